#include <sdt.h>

void plugin(int n)
{
	DTRACE_PROBE1(plugin___called, int, n);
}
