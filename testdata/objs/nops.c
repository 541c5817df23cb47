/* Marked nops, which clobber nothing and say where their arguments are. */
#include "nops.h"

int nops_leaf(int n, unsigned char c)
{
	NOPS_PROBE0(nops___none);
	NOPS_PROBE2(nops___two, n, c);
	return n * c;
}

long nops_known(long v)
{
	NOPS_PROBE2(nops___two, v, 7);
	return v;
}
