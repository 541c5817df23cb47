/* A guarded probe, which is reached once for each line of the standard input. */
#include <stdio.h>

#include "sdt.h"

SDT_PROVIDER_DEFINE(app);
SDT_PROBE_DEFINE1(app, , , guarded, "int");

int serve(int n);

__attribute__((noinline)) int serve(int n)
{
	if (!SDT_PROBE_ENABLED(app, , , guarded))
		return 0;
	SDT_PROBE1(app, , , guarded, n);
	return 1;
}
