/* A queue of jobs that threads wait at: the shared library. */
#ifndef QUEUE_H
#define QUEUE_H

#ifdef __cplusplus
extern "C" {
#endif

struct job {
	int id;
	long cost; /* additions */
	struct job *next;
};

struct queue;

struct queue *queue_new(void);
void queue_put(struct queue *q, struct job *job);
struct job *queue_get(struct queue *q); /* waits; null once the queue is closed and empty */
void queue_close(struct queue *q);
void queue_free(struct queue *q);

#ifdef __cplusplus
}
#endif

#endif
