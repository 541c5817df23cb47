// Marked nops in templates and inline functions, of which nopscxx2.cc has copies.
#include "nops.h"

void nops_cxx(int n)
{
	nops_generic(n, "int");
	nops_generic((long)-n, "long");
	nops_inlined(n + 1);
	nops_more(n);
}
