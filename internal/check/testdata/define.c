/* The definitions of all probes, and the end of one. */
#include "program.h"

SDT_PROVIDER_DEFINE(app);
SDT_PROBE_DEFINE1(app, , , start, "int");
SDT_PROBE_DEFINE2(app, , , stop, "int", "long");

C int stop(int n)
{
	SDT_PROBE2(app, , , stop, n, 2L);
	return n;
}
