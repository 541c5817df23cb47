/*
 * Times the loops of loops.c.
 *
 *	main			runs each loop once
 *	main ROUNDS PASSES	times PASSES runs of each loop in ROUNDS rounds
 *
 * prints a line for each loop and form, of what one iteration takes: nanoseconds,
 * the least and the median of all rounds.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
};

#define ENTRY_FORM(name, form) { #name, #form, name##_##form, NULL },
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

static void measure(struct work *w, int round, int passes)
{
	double start = now();
	int i;

	for (i = 0; i < passes; i++)
		w->run(&input);
	w->ns[round] = (now() - start) / ((double)passes * LENGTH);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 1, passes = argc > 2 ? atoi(argv[2]) : 1;
	int round;
	size_t i;

	for (i = 0; i < LENGTH; i++) {
		text[i] = (unsigned char)('!' + i % 90);
		numbers[i] = (int)(i * i);
	}
	for (i = 0; i < WORKS; i++)
		works[i].ns = calloc((size_t)rounds, sizeof(double));
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < WORKS; i++)
			measure(&works[i], round, passes);
	}
	for (i = 0; argc > 2 && i < WORKS; i++) {
		struct work *w = &works[i];

		qsort(w->ns, (size_t)rounds, sizeof(double), ascending);
		printf("%s %s %.4f %.4f\n", w->name, w->form, w->ns[0], w->ns[rounds / 2]);
	}
	return 0;
}
