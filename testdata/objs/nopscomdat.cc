// Marked nops in templates: their operands are in the groups of the functions.
#include "nops.h"

template <class T> __attribute__((noinline)) T nops_twice(T v)
{
	NOPS_PROBE2(nops___two, v, (int)sizeof v);
	return v + v;
}

long nops_use(int n)
{
	NOPS_PROBE0(nops___none);
	return nops_twice(n) + nops_twice((long)n);
}
