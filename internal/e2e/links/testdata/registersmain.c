/*
 * Runs registers.c. -DSTUBS makes the stubs of the unconverted twin, which tell where
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
/* Enabled when asked for, so that what it guards is reached too. */
static int enabled;
int __dtrace_isenabled_registers___one(void) { HIT(isenabled, one); return enabled; }
#else
char sdt_registers___one[96] = { 96 };
char sdt_registers___two[96] = { 96 };
char sdt_registers___none[96] = { 96 };
extern const char __start_sdt_instances_set[] __attribute__((weak));
extern const char __start_sdt_isenabled_set[] __attribute__((weak));
const char *registers_records[] = { __start_sdt_instances_set, __start_sdt_isenabled_set };
static int enabled;
#endif

int registers_work(int a) { return a ^ 5; }

/* Programs that are made at random have a main of their own. */
#ifndef RANDOM
int registers_plain(int);
int registers_test(int);
int registers_ways(int);
int registers_switch(int);
double registers_float(double, int);
void registers_tail(int);

int main(void)
{
	for (int i = 0; i < 8; i++)
		printf("result %d %d %d %d %g\n", registers_plain(i), registers_test(i), registers_ways(i),
			registers_switch(i), registers_float(i / 2.0, i));
	registers_tail(3);
	enabled = 1;
	printf("result %d\n", registers_plain(registers_test(4)));
	return 0;
}
#endif
