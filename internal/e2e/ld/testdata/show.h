/* Prints the probes that the program finds records of, each with its sites. */
#include <stdio.h>

struct sdt_provider { char *name; };
struct sdt_probe { int version; struct sdt_provider *prov; void *entry[2]; void *args[2]; char *mod, *func, *name; };
struct sdt_instance { struct sdt_probe *probe; void *offset; };
extern struct sdt_instance __start_sdt_instances_set[] __attribute__((weak, visibility("hidden")));
extern struct sdt_instance __stop_sdt_instances_set[] __attribute__((weak, visibility("hidden")));

static inline void show(const char *module)
{
	struct sdt_instance *i;

	for (i = __start_sdt_instances_set; i < __stop_sdt_instances_set; i++)
		printf("%s:%s:%s\n", module, i->probe->prov->name, i->probe->name);
}
