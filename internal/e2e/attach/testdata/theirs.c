/* A probe of SystemTap's macros beside one that is converted. */
#include <sys/sdt.h>

extern void __dtrace_probe_mixed___ours(int);
char sdt_mixed___ours[8] __attribute__((aligned(8)));

int theirs(int n)
{
	STAP_PROBE1(theirs, probe, n);
	__dtrace_probe_mixed___ours(n);
	return n;
}
