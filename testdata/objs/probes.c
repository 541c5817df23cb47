/*
 * The probe objects of the test program: a struct sdt_probe as FreeBSD 13 lays
 * it out for every id of ids.h, global, writable, of default visibility.
 */
#include "ids.h"

struct sdt_provider {
	const char *name;
	void *entry[2];
	unsigned long id;
	int refs;
};

struct sdt_probe {
	int version;
	struct sdt_provider *prov;
	void *probe_entry[2];
	void *argtype_list[2];
	const char *mod;
	const char *func;
	const char *name;
	unsigned long id;
	int n_args;
	void *linker_file;
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct sdt_probe) == 96,
    "struct sdt_probe has FreeBSD's size");

#define DEFINE(i, p, n, a)                                                     \
	static struct sdt_provider provider_##i = { .name = p };               \
	extern struct sdt_probe sdt_##i;                                       \
	struct sdt_probe sdt_##i = {                                           \
		.version = sizeof(struct sdt_probe),                           \
		.prov = &provider_##i,                                         \
		.mod = "",                                                     \
		.func = "",                                                    \
		.name = n,                                                     \
		.n_args = a,                                                   \
	};

CALLED(DEFINE)
ONLY_TESTED(DEFINE)
