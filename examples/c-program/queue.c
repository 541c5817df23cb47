#include <pthread.h>
#include <stdlib.h>

#include <sdt.h>

#include "queue.h"

SDT_PROVIDER_DEFINE(queue);
SDT_PROBE_DEFINE2(queue, , , put, "int", "long");
SDT_PROBE_DEFINE1(queue, , , get, "int");
SDT_PROBE_DEFINE0(queue, , , wait);
SDT_PROBE_DEFINE0(queue, , , closed);

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *first, **last;
	int closed;
};

struct queue *queue_new(void)
{
	struct queue *q = calloc(1, sizeof *q);

	if (q == NULL)
		return NULL;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	q->last = &q->first;
	return q;
}

void queue_put(struct queue *q, struct job *job)
{
	job->next = NULL;
	SDT_PROBE2(queue, , , put, job->id, job->cost);
	pthread_mutex_lock(&q->lock);
	*q->last = job;
	q->last = &job->next;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

/* A probe in a static function, which is listed where it is inlined. */
static void take(struct queue *q, struct job *job)
{
	q->first = job->next;
	if (q->first == NULL)
		q->last = &q->first;
	SDT_PROBE1(queue, , , get, job->id);
}

struct job *queue_get(struct queue *q)
{
	struct job *job;

	pthread_mutex_lock(&q->lock);
	while ((job = q->first) == NULL && !q->closed) {
		SDT_PROBE0(queue, , , wait);
		pthread_cond_wait(&q->changed, &q->lock);
	}
	if (job != NULL)
		take(q, job);
	pthread_mutex_unlock(&q->lock);
	return job;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = 1;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	SDT_PROBE0(queue, , , closed);
}

void queue_free(struct queue *q)
{
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}
