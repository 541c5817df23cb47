/*
 * Shows the records of its module as the program itself finds them: between
 * __start_ and __stop_, through the probe objects, after the dynamic loader has
 * done its work. One line for a record on stderr, when LINKTEST_SHOW is set:
 *
 *     record <kind> <provider> <name> <site, from the module's ELF header>
 *
 * -DLAYOUT=1, 2, 3: pairs, relative, freebsd.
 */
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long word;

struct sdt_provider {
	const char *name;
};

struct sdt_probe {
	int version;
	struct sdt_provider *prov;
	void *entries[4];
	const char *mod;
	const char *func;
	const char *name;
};

#define HIDDEN __attribute__((visibility("hidden")))

extern const char __ehdr_start[] HIDDEN;

static void show(const char *kind, const struct sdt_probe *probe, word site)
{
	fprintf(stderr, "record %s %s %s %#lx\n", kind, probe->prov->name,
	    probe->name, site - (word)__ehdr_start);
}

#if LAYOUT == 1
typedef struct {
	const struct sdt_probe *probe;
	word site;
} record;
#define PROBES sdt_instances_set
#define TESTS sdt_isenabled_set
#define SHOW(kind, r) show(kind, (r)->probe, (r)->site)
#elif LAYOUT == 2
typedef struct {
	int probe;
	int site;
} record;
#define PROBES sdt_instances_rel
#define TESTS sdt_isenabled_rel
#define SHOW(kind, r)                                                          \
	show(kind, (const struct sdt_probe *)((const char *)&(r)->probe + (r)->probe), \
	    (word)&(r)->site + (word)(long)(r)->site)
#elif LAYOUT == 3
struct instance {
	const struct sdt_probe *probe;
	word site;
};
typedef const struct instance *record;
#define PROBES set_sdt_instances_set
#define TESTS set_sdt_isenabled_set
#define SHOW(kind, r) show(kind, (*(r))->probe, (*(r))->site)
#endif

#define BOUND(edge, set) BOUND_(edge, set)
#define BOUND_(edge, set) __##edge##_##set

/* Weak: a program without probes has no such section. */
extern const record BOUND(start, PROBES)[] __attribute__((weak)) HIDDEN;
extern const record BOUND(stop, PROBES)[] __attribute__((weak)) HIDDEN;
extern const record BOUND(start, TESTS)[] __attribute__((weak)) HIDDEN;
extern const record BOUND(stop, TESTS)[] __attribute__((weak)) HIDDEN;

__attribute__((constructor)) static void show_all(void)
{
	const record *r;

	if (getenv("LINKTEST_SHOW") == NULL)
		return;
	for (r = BOUND(start, PROBES); r < BOUND(stop, PROBES); r++)
		SHOW("probe", r);
	for (r = BOUND(start, TESTS); r < BOUND(stop, TESTS); r++)
		SHOW("isenabled", r);
}
