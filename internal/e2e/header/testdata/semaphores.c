/*
 * Counts semaphores up and down as a tracer does, and prints what tests of them say,
 * in C and in semaphores.cc. A loop that waits for one ends when a signal counts it up.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include <sdt.h>

SDT_PROVIDER_DEFINE(sem);
SDT_PROBE_DEFINE1(sem, , , both, "int");
SDT_PROBE_DEFINE0(sem, , , waited);

extern volatile unsigned short both __asm__("__dtrace_semaphore_sem___both") __attribute__((visibility("hidden")));
extern volatile unsigned short waited __asm__("__dtrace_semaphore_sem___waited") __attribute__((visibility("hidden")));

int semaphores_cxx(void);

static int evaluated;

static int test(void)
{
	if (!SDT_PROBE_ENABLED(sem, , , both))
		return 0;
	SDT_PROBE1(sem, , , both, ++evaluated);
	DTRACE_PROBE1(sem___illumos, int, ++evaluated);
	return 1;
}

static void up(int signal)
{
	(void)signal;
	waited++;
}

int main(void)
{
	const unsigned short counts[] = { 0, 1, 256, 65535, 0 };
	const struct itimerval soon = { .it_value = { .tv_usec = 10000 } };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		both = counts[i];
		printf("%d %d %d\n", counts[i], test(), semaphores_cxx());
	}
	printf("evaluated %d\n", evaluated);
	signal(SIGALRM, up);
	setitimer(ITIMER_REAL, &soon, 0);
	while (!SDT_PROBE_ENABLED(sem, , , waited))
		;
	puts("waited");
	return DTRACE_PROBE_ENABLED(sem___illumos);
}
