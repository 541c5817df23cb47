/* A library that comes and goes. */
#include <sdt.h>

SDT_PROVIDER_DEFINE(agentlibrary);
SDT_PROBE_DEFINE1(agentlibrary, , , work, "int");

int library_work(int n);
int library_work(int n)
{
	int m = n + 2;

	SDT_PROBE1(agentlibrary, , , work, n);
	return m;
}
