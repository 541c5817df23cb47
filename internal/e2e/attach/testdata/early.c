/* A guarded probe of SystemTap's macros, reached eight times, right after the start. */
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <sys/sdt.h>

__extension__ unsigned short early_hit_semaphore __attribute__((section(".probes"), used, aligned(ALIGN)));

int main(void)
{
	int n, up = 0;

	for (n = 0; n < 8; n++) {
		if (*(volatile unsigned short *)&early_hit_semaphore) {
			STAP_PROBE1(early, hit, n);
			up++;
		}
	}
	printf("up %d\n", up);
	return 0;
}
