/*
 * What random programs call. -DSTUBS makes the stubs of the unconverted twin, which tell where
 * they return to, else the probe objects.
 */
#include <stdio.h>

#ifdef STUBS
extern const char __ehdr_start[];
#define HIT(kind, id) \
	printf("hit " #kind " registers___" #id " %#lx\n", \
		(unsigned long)((const char *)__builtin_return_address(0) - __ehdr_start))
void __dtrace_probe_registers___one(unsigned long a) { HIT(probe, one); printf("with %lu\n", a); }
void __dtrace_probe_registers___two(unsigned long a, unsigned long b) { HIT(probe, two); printf("with %lu %lu\n", a, b); }
void __dtrace_probe_registers___none(void) { HIT(probe, none); }
int __dtrace_isenabled_registers___one(void) { HIT(isenabled, one); return 0; }
#else
char sdt_registers___one[96] = { 96 };
char sdt_registers___two[96] = { 96 };
char sdt_registers___none[96] = { 96 };
extern const char __start_sdt_instances_set[] __attribute__((weak));
extern const char __start_sdt_isenabled_set[] __attribute__((weak));
const char *registers_records[] = { __start_sdt_instances_set, __start_sdt_isenabled_set };
#endif

int registers_work(int a) { return a ^ 5; }
