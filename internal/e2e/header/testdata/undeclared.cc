/* What C++ has to know of a probe, and does not. */
#include <sdt.h>

void fire();

void fire()
{
#if CASE == 0
	DTRACE_PROBE(app___probe);
#elif CASE == 1
	SDT_PROBE0(app, , , probe);
#else
	if (DTRACE_PROBE_ENABLED(app___probe))
		return;
#endif
}
