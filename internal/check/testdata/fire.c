/* Tracepoints of a probe that is defined elsewhere. */
#include "program.h"

SDT_PROBE_DECLARE(app, , , start);

C int fire(int n)
{
	if (SDT_PROBE_ENABLED(app, , , start))
		SDT_PROBE1(app, , , start, n);
	return n + 1;
}

C int unused(int n)
{
	SDT_PROBE1(app, , , start, n);
	return n - 1;
}

int main(int argc, char **argv)
{
	(void)argv;
	SDT_PROBE1(app, , , start, argc);
	return stop(fire(argc)) - 2;
}
