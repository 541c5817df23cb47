#include "head.h"

int guard(int n)
{
	if (__dtrace_isenabled_app___go())
		__dtrace_probe_app___go(n);
	return n + 1;
}
