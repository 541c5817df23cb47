/*
 * Switches its own probes while threads fire them, and load and unload a
 * library that has some: each argument is right, each hit of a probe that is on
 * is seen once, and the code is as it was.
 */
#include <sdt_agent.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sdt.h>

#include "agent.h"

SDT_PROVIDER_DEFINE(agent);
SDT_PROBE_DEFINE5(agent, , , all__types, "int", "const char *", "long", "unsigned char", "short");
SDT_PROBE_DEFINE1(agent, , , plain, "int");
SDT_PROBE_DEFINE0(agent, , , none);

static long hits, faults;
static volatile int stop;
static const char text[] = "text";
static double sum[8];

static void fail(const char *what, const struct sdt_agent_hit *h)
{
	__atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
	printf("%s: %s in %s, %d arguments, known %#x, %#lx %#lx %#lx %#lx %#lx\n", what, h->site->name, h->site->function, h->count, h->known,
	    (long)h->args[0], (long)h->args[1], (long)h->args[2], (long)h->args[3], (long)h->args[4]);
}

static void hit(const struct sdt_agent_hit *h, void *data)
{
	int n = (int)h->args[0];
	char name[16];

	__atomic_add_fetch(&hits, 1, __ATOMIC_RELAXED);
	/* Clobbers vector registers, as handlers may. */
	snprintf(name, sizeof name, "%.3f", n * 1.5);
	if (data != &hits)
		fail("data", h);
	if (strcmp(h->site->name, "all-types") == 0) {
		if (h->count != 5 || h->known != 31 || (const char *)h->args[1] != text || (long)h->args[2] != LONG(n) ||
		    h->args[3] != BYTE(n) || (long)h->args[4] != SHORT(n))
			fail("arguments", h);
		if (strncmp(h->site->function, "all_types", 9) != 0)
			fail("function", h);
	} else if (strcmp(h->site->name, "none") == 0) {
		if (h->site->is_nop ? h->count != 0 || h->known != 0 : h->count > 8)
			fail("arguments", h);
	} else if (h->count != 1 || h->known != 1 || (long)h->args[0] != n)
		fail("argument", h);
}

__attribute__((noinline)) static double all_types(int n, double d)
{
	double before = d * 2 + 1;

	if (SDT_PROBE_ENABLED(agent, , , all__types))
		SDT_PROBE5(agent, , , all__types, n, text, LONG(n), (unsigned char)BYTE(n), (short)SHORT(n));
	SDT_PROBE0(agent, , , none);	/* with numbers in vector registers */
	return before + d;
}

__attribute__((noinline)) static int plain(int n)
{
	SDT_PROBE1(agent, , , plain, n);
	return n + 1;
}

static void work(int n)
{
	double d = all_types(n, n * 0.25);

	if (d != n * 0.75 + 1)
		faults++, printf("all_types(%d) returned %f\n", n, d);
	if (plain(n) != n + 1)
		faults++, printf("plain(%d)\n", n);
}

static void *run(void *data)
{
	for (int n = (int)(intptr_t)data; !stop; n = (n + 8) & 0xffffff)
		work(n);
	return NULL;
}

static void *load(void *data)
{
	while (!stop) {
		void *library = dlopen((const char *)data, RTLD_NOW | RTLD_LOCAL);
		int (*library_work)(int) = library == NULL ? NULL : (int (*)(int))dlsym(library, "library_work");

		if (library_work == NULL) {
			faults++, printf("%s\n", dlerror());
			return NULL;
		}
		for (int n = 0; n < 50; n++)
			if (library_work(n) != n + 2)
				faults++, printf("library_work(%d)\n", n);
		dlclose(library);
	}
	return NULL;
}

static int show(const struct sdt_agent_site *s, void *data)
{
	printf("site %s:%s:%s:%s %#lx %s%s(%s)\n", s->provider, s->module, s->function, s->name, (long)s->offset,
	    s->semaphore != NULL ? "semaphore " : "", s->is_test ? "test" : "call", s->types);
	return data != NULL;
}

static int order(const char *what, int got)
{
	if (got <= 0)
		faults++, printf("%s: %d, %s\n", what, got, sdt_agent_reason(got));
	return got;
}

int main(int argc, char **argv)
{
	pthread_t threads[8];
	struct sdt_agent_image im;
	unsigned char *before;
	long milliseconds = atol(argv[2]), rounds = 0;
	struct timespec start, now;

	(void)argc, (void)sum;
	if (sdt_agent_on("", hit, &hits) != SDT_AGENT_NOT_STARTED)
		faults++, printf("on before start\n");
	order("start", sdt_agent_start());
	im = sdt_agent.list->image[0];
	before = malloc(im.text_high - im.text_low);
	memcpy(before, (void *)im.text_low, im.text_high - im.text_low);
	printf("%d sites\n", order("each", sdt_agent_each("agent:::", show, NULL)));
	for (int n = 0; n < 1000; n++)
		work(n);
	if (hits != 0)
		faults++, printf("%ld hits of probes that are off\n", hits);
	order("on", sdt_agent_on("agent:::", hit, &hits));
	for (int i = 0; i < SDT_AGENT_SITES; i++)
		if (sdt_agent.armed[i].used == 1)
			printf("%s by %s\n", sdt_agent.armed[i].site.name, (const char *[]){ "semaphore", "breakpoint", "jump" }[sdt_agent.armed[i].way]);
	if (sdt_agent_on("agent:::", hit, &hits) != SDT_AGENT_TAKEN)
		faults++, printf("on twice\n");
	for (int n = -500; n < 500; n++)
		work(n);
	if (hits != 3000)
		faults++, printf("%ld hits of 3000\n", hits);
	order("off", sdt_agent_off("agent:::plain"));
	for (int n = 0; n < 100; n++)
		work(n);
	if (hits != 3200)
		faults++, printf("%ld hits of 3200\n", hits);
	order("off", sdt_agent_off("agent*:::all-types"));
	order("off", sdt_agent_off("none"));
	if (sdt_agent_off("") != SDT_AGENT_NO_SITE)
		faults++, printf("off twice\n");
	for (intptr_t i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, i & 1 ? load : run, i & 1 ? argv[1] : (void *)i);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		rounds++;
		order("on", sdt_agent_on("", hit, &hits));
		order("off", sdt_agent_off(""));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
	stop = 1;
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	if (memcmp(before, (void *)im.text_low, im.text_high - im.text_low) != 0)
		faults++, printf("the code is another\n");
	fprintf(stderr, "%ld rounds, %ld hits\n", rounds, hits);
	printf("%ld faults\n", faults);
	return faults != 0;
}
