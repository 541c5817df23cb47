/*
 * System calls that wait, which a tracer interrupts: each has to take as long, and return what it returns untraced.
 * waits prints what was wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sdt.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void check(const char *what, double begun, double want, long result, long right)
{
	double took = now() - begun;
	if (result != right || took < want || took > want + 1)
		printf("%s: %ld (errno %d) after %.3f s\n", what, result, errno, took);
	DTRACE_PROBE1(waits___done, char *, what);
}

static int ends[2];

static void *reader(void *unused)
{
	char c;
	double begun = now();
	check("read", begun, .9, read(ends[0], &c, 1), 1);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	struct timespec second = { 1, 0 };
	double begun = now();
	pipe(ends);
	pthread_create(&thread, NULL, reader, NULL);
	check("nanosleep", begun, 1, nanosleep(&second, NULL), 0);
	write(ends[1], "x", 1);
	pthread_join(thread, NULL);
	begun = now();
	check("poll", begun, .7, poll(NULL, 0, 700), 0);
	begun = now();
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	check("mutex", begun, .9, pthread_mutex_timedlock(&lock, &until), ETIMEDOUT);
	puts("done");
}
