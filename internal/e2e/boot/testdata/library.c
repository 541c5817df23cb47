/* Probes of a shared library: what is armed is found by its place in the file. */
#include <stdio.h>
#include <sdt.h>

#include "library.h"

void __dtrace_probe_lib___call(int, long);
void __dtrace_probe_lib___tail(int);

__attribute__((noinline)) static void tail(int n)
{
	WANT("lib:tail %d", 5 * n);
	__dtrace_probe_lib___tail(5 * n);
}

void in_library(int n)
{
	WANT("lib:call %d %d", n, -n);
	__dtrace_probe_lib___call(n, -n);
	WANT("lib:nop %d %d", n, 9);
	DTRACE_PROBE2(lib___nop, int, n, int, 9);
	printf("guard %d\n", DTRACE_PROBE_ENABLED(lib___guarded) ? 1 : 0);
	if (DTRACE_PROBE_ENABLED(lib___guarded)) {
		WANT("lib:guarded");
		DTRACE_PROBE(lib___guarded);
	}
	tail(n);
}
