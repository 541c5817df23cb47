/*
 * Threads, signals, forks and system calls around probes. It prints results that do not depend on time, and the hits of
 * each probe: busy THREADS ROUNDS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <spawn.h>
#include <sdt.h>

extern char **environ;
static long rounds, handled;
static volatile int done;

static void handler(int sig)
{
	long n = __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	DTRACE_PROBE1(busy___signal, long, n);
}

__attribute__((noinline)) static uint64_t mix(uint64_t x)
{
	x = x * 6364136223846793005u + 1442695040888963407u;
	DTRACE_PROBE3(busy___mix, uint64_t, x, int, (int)(x >> 60), char *, (x & 1) ? "odd" : "even");
	return x ^ x >> 29;
}

static void *worker(void *number)
{
	stack_t small = { .ss_sp = malloc(MINSIGSTKSZ + 4096), .ss_size = MINSIGSTKSZ + 4096 };
	uint64_t x = (uintptr_t)number + 1;

	sigaltstack(&small, NULL);
	for (long i = 0; i < rounds; i++) {
		x = mix(x);
		if (i % 64 == 0) {
			struct timespec t = { 0, 1000 };
			while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
				;
		}
		if (DTRACE_PROBE_ENABLED(busy___guarded))
			DTRACE_PROBE1(busy___guarded, long, i);
	}
	return (void *)x;
}

int main(int argc, char **argv)
{
	long threads = atol(argv[1]);
	pthread_t all[64];
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };
	uint64_t sum = 0;
	int children = 0, status;
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = { { 0, 2000000 }, { 0, 2000000 } };

	rounds = atol(argv[2]);
	sigaction(SIGUSR1, &action, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &often, NULL);
	for (long i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, worker, (void *)i);
	for (int i = 0; i < 6; i++) {
		pid_t child;
		if (i % 2) {
			char *args[] = { "sh", "-c", "exit 3", NULL };
			if (posix_spawn(&child, "/bin/sh", NULL, NULL, args, environ))
				abort();
		} else if (!(child = fork())) {
			uint64_t x = 1;
			for (int k = 0; k < 100; k++)
				x = mix(x);
			_exit(x % 100);
		}
		while (waitpid(child, &status, 0) < 0)
			if (errno != EINTR)
				abort();
		if (!WIFEXITED(status))
			abort();
		children = children * 31 + WEXITSTATUS(status);
	}
	for (long i = 0; i < threads; i++) {
		void *x;
		pthread_join(all[i], &x);
		sum += (uint64_t)x;
	}
	timer_delete(timer);
	printf("%016lx %d\n", sum, children);
	fprintf(stderr, "signals %ld\n", handled);
	return 7;
}
