// Marked nops in templates and inline functions, of which nopscxx.cc has copies.
#include "nops.h"

void nops_more(int n)
{
	nops_generic(n + 2, "int");
	nops_inlined(n + 3);
	nops_generic((short)-n, "short");
}
