#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include "semaphore.h"

void hit(int n, long m)
{
	if (app_hit_semaphore)
		STAP_PROBE2(app, hit, n, m);
	STAP_PROBE(app, hit);
}
