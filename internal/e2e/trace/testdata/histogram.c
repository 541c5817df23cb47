/* Passes numbers to a probe in 16 threads, and writes to a file how many were in which range: powers of two, or ranges of 100. */
#include <sdt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 16, rounds = 100000, most = 200 };
static unsigned long (*counts)[most]; /* of each thread */
static int powers, filtered;

static int range(long v)
{
	if (!powers)
		return v < -500 ? 0 : v >= 500 ? 11 : (int)((v + 500) / 100) + 1;
	int n = 0;
	for (unsigned long u = v < 0 ? -(unsigned long)v : (unsigned long)v; u > 0; u >>= 1)
		n++;
	return 64 + (v < 0 ? -n : n);
}

static void *run(void *arg)
{
	long thread = (long)arg;
	unsigned long x = thread * 7919 + 1, *own = counts[thread];
	for (int i = 0; i < rounds; i++) {
		x = x * 6364136223846793005UL + 1442695040888963407UL;
		long v = powers ? (long)x >> (x >> 58) : (long)(x >> 33) % 1500 - 700;
		DTRACE_PROBE2(counting___hit, long, v, unsigned char, thread);
		if (!filtered || (thread >= 4 && v != 7))
			own[range(v)]++;
	}
	return 0;
}

static void show(FILE *out, int n)
{
	char bounds[2][32];
	if (!powers && n > 0 && n < 11)
		fprintf(out, "[%d, %d)", 100 * (n - 1) - 500, 100 * n - 500);
	else if (!powers)
		fprintf(out, n == 0 ? "(..., -500)" : "[500, ...)");
	if (!powers)
		return;
	int power = n < 64 ? 64 - n : n - 64;
	for (int i = 0; i < 2; i++)
		snprintf(bounds[i], sizeof(bounds[i]), "%d%.1s", 1 << (power - i) % 10, power - i < 10 ? "" : &"KMGTPE"[(power - i) / 10 - 1]);
	if (power == 0)
		fprintf(out, "[0, 1)");
	else if (n < 64)
		fprintf(out, "(-%s, -%s]", bounds[0], bounds[1]);
	else
		fprintf(out, "[%s, %s)", bounds[1], bounds[0]);
}

int main(int argc, char **argv)
{
	pthread_t all[threads];
	powers = !strcmp(argv[2], "powers");
	filtered = !strcmp(argv[2], "filtered");
	counts = mmap(0, 2 * threads * sizeof(*counts), PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);
	pid_t child = argc > 3 ? fork() : 1;
	if (child == 0)
		counts += threads;
	for (long i = 0; i < threads; i++)
		pthread_create(&all[i], 0, run, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], 0);
	if (child == 0)
		return 0;
	if (argc > 3)
		wait(0);
	FILE *out = fopen(argv[1], "w");
	for (int n = 0; n < most; n++) {
		unsigned long sum = 0;
		for (int i = 0; i < 2 * threads; i++)
			sum += counts[i][n];
		if (sum == 0)
			continue;
		show(out, n);
		fprintf(out, " %lu\n", sum);
	}
	return fclose(out);
}
