/*
 * A loop with one tracepoint of two arguments, in registers: loop SECONDS prints, each half second, how
 * many nanoseconds of the thread's processor time an iteration took. The tracepoint is sdt.h's, with
 * LTTNG one of LTTng-UST, and with FUNCTION a function, for tracers of functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng.h"
#define TRACE(i, x) lttng_ust_tracepoint(hot, tick, i, x)
#elif defined(FUNCTION)
__attribute__((noinline, noclone)) void tick(int i, long x)
{
	__asm__ volatile("" : : "r"(i), "r"(x));
}
#define TRACE(i, x) tick(i, x)
#else
#include <sdt.h>
#define TRACE(i, x) DTRACE_PROBE2(hot___tick, int, i, long, x)
#endif

#define WITHOUT __attribute__((no_instrument_function))

WITHOUT static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

WITHOUT __attribute__((noinline)) static long loop(long n)
{
	long x = 7;
	for (long i = 0; i < n; i++) {
		x = (long)((unsigned long)x * 6364136223846793005u + 1442695040888963407u);
		TRACE((int)i, x);
		x ^= x >> 29;
#ifdef SLOW /* so that the tracer can read all events */
		for (int k = 0; k < 100; k++)
			x = (long)((unsigned long)x * 6364136223846793005u + 1);
#endif
	}
	return x;
}

WITHOUT int main(int argc, char **argv)
{
	const long n = 100000;
	long done = 0, want = loop(n);
	double now, last = seconds(CLOCK_MONOTONIC), end = last + atof(argv[argc - 1]), used = seconds(CLOCK_THREAD_CPUTIME_ID);
	while ((now = seconds(CLOCK_MONOTONIC)) < end) {
		if (loop(n) != want)
			abort();
		done += n;
		if (now - last > 0.5) {
			double usedNow = seconds(CLOCK_THREAD_CPUTIME_ID);
			printf("%.2f\n", (usedNow - used) / (double)done * 1e9);
			fflush(stdout);
			last = now, used = usedNow, done = 0;
		}
	}
}
