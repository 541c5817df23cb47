/*
 * A server without a network: threads take jobs from a queue and work on them.
 *
 *	server [JOBS [THREADS]]
 *
 * With JOBS 0 it goes on until it is interrupted, for tracers to look at.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sdt.h>

#include "queue.h"
#include "work.h"

SDT_PROVIDER_DEFINE(server);
SDT_PROBE_DEFINE1(server, , , start, "int");
SDT_PROBE_DEFINE3(server, , , done, "int", "long", "bool");

enum { MAX_THREADS = 64 };

static volatile sig_atomic_t interrupted;

static void interrupt(int unused)
{
	(void)unused;
	interrupted = 1;
}

static void *serve(void *queue)
{
	long sum = 0;
	struct job *job;

	while ((job = queue_get(queue)) != NULL) {
		long result = work(job->cost);

		SDT_PROBE3(server, , , done, job->id, result, result % 2 == 0);
		sum += result;
		free(job);
	}
	return (void *)sum;
}

static int feed(struct queue *q, int jobs)
{
	for (int id = 1; jobs == 0 || id <= jobs; id++) {
		struct job *job = malloc(sizeof *job);

		if (job == NULL)
			return -1;
		job->id = id;
		job->cost = 100 + id % 1000;
		queue_put(q, job);
		if (jobs == 0)
			usleep(10000);
		if (interrupted)
			break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int jobs = argc > 1 ? atoi(argv[1]) : 1000;
	int threads = argc > 2 ? atoi(argv[2]) : 4;
	pthread_t thread[MAX_THREADS];
	struct queue *q = queue_new();
	long sum = 0;
	int failed;

	if (q == NULL || jobs < 0 || threads < 1 || threads > MAX_THREADS)
		return 2;
	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	SDT_PROBE1(server, , , start, threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, serve, q) != 0)
			return 1;
	failed = feed(q, jobs);
	queue_close(q);
	for (int i = 0; i < threads; i++) {
		void *part;

		pthread_join(thread[i], &part);
		sum += (long)part;
	}
	queue_free(q);
	printf("%d jobs, %ld\n", jobs, sum);
	return failed != 0;
}
