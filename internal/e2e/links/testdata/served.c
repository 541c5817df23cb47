/* A library with probes that threads fire, and one that none does. */
#include "served.h"

void __dtrace_probe_served___request(long);
void __dtrace_probe_served___idle(void);
int sdt_served___request, sdt_served___idle;

__attribute__((noinline)) static void serve(long n)
{
	__dtrace_probe_served___request(n);
	served = n;
}

volatile long served;

void served_loop(void)
{
	for (;;)
		serve(served + 1);
}

void served_idle(void)
{
	__dtrace_probe_served___idle();
	served = 0;
}

extern struct record __start_sdt_instances_set[] __attribute__((weak));
extern struct record __stop_sdt_instances_set[] __attribute__((weak));

void served_show(void)
{
	show("library", __start_sdt_instances_set, __stop_sdt_instances_set);
}
