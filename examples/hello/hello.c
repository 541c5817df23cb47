/*
 * A program with two probes. It calls undefined stubs; sdtconvert
 * turns the calls into NOPs before the program is linked, and records
 * them. The program then prints its own records.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int __dtrace_isenabled_hello___greet(void);
void __dtrace_probe_hello___greet(const char *name, int length);
void __dtrace_probe_hello___done(int length);

struct sdt_probe {
	const char *name;
};

struct sdt_instance {
	const struct sdt_probe *probe;
	uintptr_t offset;
};

/* Weak: a program whose probes are all gone has no such section. */
extern const struct sdt_instance __start_sdt_instances_set[] __attribute__((weak));
extern const struct sdt_instance __stop_sdt_instances_set[] __attribute__((weak));

__attribute__((noinline)) static int greet(const char *name)
{
	int length = printf("Hello, %s!\n", name);

	if (__dtrace_isenabled_hello___greet())
		__dtrace_probe_hello___greet(name, length);
	return length;
}

int main(int argc, char **argv)
{
	int length = greet(argc > 1 ? argv[1] : "world");

	__dtrace_probe_hello___done(length);
	for (const struct sdt_instance *i = __start_sdt_instances_set; i < __stop_sdt_instances_set; i++)
		printf("probe %s at main%+td\n", i->probe->name, (ptrdiff_t)(i->offset - (uintptr_t)main));
	return length < 0;
}
