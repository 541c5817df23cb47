/*
 * Times the loops of loops.c.
 *
 *	main			runs each loop once
 *	main ROUNDS PASSES	times PASSES runs of each loop in ROUNDS rounds
 *
 * prints a line for each loop and form, of what one iteration takes: nanoseconds,
 * the least and the median of all rounds, and cycles. These are the processor's
 * own if it lets us count them. Otherwise they are the least time in units of an
 * addition that waits for another one, which takes a cycle.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loops.h"

#define PARAMETERS_0 (void)
#define PARAMETERS_2 (unsigned long, unsigned long)
#define PARAMETERS_6 (unsigned long, unsigned long, unsigned long, unsigned long, unsigned long, unsigned long)
#define DEFINE(name, n) unsigned long id_##name; void (*function_##name) PARAMETERS_##n;
LOOPS(DEFINE)
void (*hook)(unsigned long, unsigned long, unsigned long, unsigned long, unsigned long, unsigned long, unsigned long);

#define DECLARE_FORM(name, form) loop name##_##form;
#define DECLARE(name, n) FORMS(DECLARE_FORM, name)
LOOPS(DECLARE)

struct work {
	const char *name, *form;
	loop *run;
	double *ns;		/* of all rounds */
	double cycles;		/* least, or -1 */
};

#define ENTRY_FORM(name, form) { #name, #form, name##_##form, NULL, -1 },
#define ENTRY(name, n) FORMS(ENTRY_FORM, name)
static struct work works[] = { LOOPS(ENTRY) };
#define WORKS (sizeof works / sizeof *works)

static unsigned char text[LENGTH + 1];
static int numbers[LENGTH];
static struct input input = { text, numbers, 0, 0.5 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* counter opens the processor's counter of cycles, or gives -1. */
static int counter(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_kernel = 1, .exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static double count(int fd)
{
	unsigned long long n = 0;

	return fd >= 0 && read(fd, &n, sizeof n) == sizeof n ? (double)n : -1;
}

/* addition is the time of one of a thousand that wait for each other. */
static double addition(void)
{
	unsigned long sum = 0, one = 1;
	double start = now();
	int i;

	for (i = 0; i < 100; i++)
		__asm__ volatile(".rept 1000\n\tadd %1,%0\n\t.endr" : "+r"(sum) : "r"(one));
	return (now() - start) / 100e3;
}

static void measure(struct work *w, int round, int passes, int cycles)
{
	double iterations = (double)passes * LENGTH, counted = count(cycles), start = now();
	int i;

	for (i = 0; i < passes; i++)
		w->run(&input);
	w->ns[round] = (now() - start) / iterations;
	if (counted >= 0) {
		counted = (count(cycles) - counted) / iterations;
		if (w->cycles < 0 || counted < w->cycles)
			w->cycles = counted;
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 1, passes = argc > 2 ? atoi(argv[2]) : 1;
	int round, cycles = counter();
	double cycle = 1e9;
	size_t i;

	for (i = 0; i < LENGTH; i++) {
		text[i] = (unsigned char)('!' + i % 90);
		numbers[i] = (int)(i * i);
	}
	for (i = 0; i < WORKS; i++)
		works[i].ns = calloc((size_t)rounds, sizeof(double));
	for (round = 0; round < rounds; round++) {
		double a = addition();

		if (a < cycle)
			cycle = a;
		for (i = 0; i < WORKS; i++)
			measure(&works[i], round, passes, cycles);
	}
	for (i = 0; argc > 2 && i < WORKS; i++) {
		struct work *w = &works[i];

		qsort(w->ns, (size_t)rounds, sizeof(double), ascending);
		printf("%s %s %.4f %.4f %.3f %s\n", w->name, w->form, w->ns[0], w->ns[rounds / 2],
		    cycles >= 0 ? w->cycles : w->ns[0] / cycle, cycles >= 0 ? "counted" : "additions");
	}
	return 0;
}
