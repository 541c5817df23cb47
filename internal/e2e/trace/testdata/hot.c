// Four threads that hit a probe all the time, until the standard input ends.
#include <pthread.h>
#include <stdio.h>
#include <sdt.h>

static volatile int stop;
static long results[4];

__attribute__((noinline)) static void hit(long i, long x)
{
	DTRACE_PROBE2(hot___tick, long, i, long, x);
}

static void *run(void *result)
{
	long x = 1;
	for (long i = 0; !stop; i++) {
		x = x * 6364136223846793005 + 1;
		hit(i, x);
	}
	*(long *)result = x;
	return 0;
}

int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, run, &results[i]);
	getchar();
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	puts("fine");
}
