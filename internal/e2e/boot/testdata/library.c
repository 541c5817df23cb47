/* Probes of a shared library: what is armed is found by its place in the file. */
#include <stdio.h>
#include <sdt.h>

#include "library.h"

void __dtrace_probe_lib___entered(int, long);
void __dtrace_probe_lib___left(int);

__attribute__((noinline)) static void tail(int n)
{
	WANT("lib:left %d", 5 * n);
	__dtrace_probe_lib___left(5 * n);
}

void in_library(int n)
{
	WANT("lib:entered %d %d", n, -n);
	__dtrace_probe_lib___entered(n, -n);
	WANT("lib:marked %d %d", n, 9);
	DTRACE_PROBE2(lib___marked, int, n, int, 9);
	printf("guard %d\n", DTRACE_PROBE_ENABLED(lib___tested) ? 1 : 0);
	if (DTRACE_PROBE_ENABLED(lib___tested)) {
		WANT("lib:tested");
		DTRACE_PROBE(lib___tested);
	}
	tail(n);
}
