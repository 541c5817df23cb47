#include <sys/sdt.h>
#include "semaphore.h"

__extension__ unsigned short app_hit_semaphore __attribute__((section(".probes")));

int plain(char **argv)
{
	STAP_PROBE1(app, end__of__line, argv);
	return 0;
}
