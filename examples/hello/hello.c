/*
 * A program with two probes that prints its own records: those that sdtconvert
 * leaves for kernels and agents. Tracers find the same probes by notes.
 */
#include <stdint.h>
#include <stdio.h>

#include <sdt.h>

SDT_PROVIDER_DEFINE(hello);
SDT_PROBE_DEFINE2(hello, , , greet, "char *", "int");
SDT_PROBE_DEFINE1(hello, , , done, "int");

struct record {
	const struct sdt_probe *probe;
	uintptr_t site;
};

/* Weak: a program whose probes are all gone has no such section. */
extern const struct record __start_sdt_instances_set[] __attribute__((weak, visibility("hidden")));
extern const struct record __stop_sdt_instances_set[] __attribute__((weak, visibility("hidden")));

__attribute__((noinline)) static int greet(const char *name)
{
	int length = printf("Hello, %s!\n", name);

	if (SDT_PROBE_ENABLED(hello, , , greet))
		SDT_PROBE2(hello, , , greet, name, length);
	return length;
}

int main(int argc, char **argv)
{
	int length = greet(argc > 1 ? argv[1] : "world");

	SDT_PROBE1(hello, , , done, length);
	for (const struct record *r = __start_sdt_instances_set; r < __stop_sdt_instances_set; r++)
		printf("record of %s:::%s at %#lx\n", r->probe->prov->name, r->probe->name, (unsigned long)r->site);
	return length < 0;
}
