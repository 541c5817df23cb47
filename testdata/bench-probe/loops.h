/* The loops that scripts/bench-probe times, and what they work on. */
#include <stddef.h>

/* Name and number of arguments of each loop's probe. */
#define LOOPS(X)		\
	X(none_passed, 0)	\
	X(registers_2, 2)	\
	X(registers_6, 6)	\
	X(computed_2, 2)	\
	X(computed_6, 6)	\
	X(tail_call, 2)		\
	X(memory, 0)		\
	X(many_values, 0)	\
	X(floating, 0)		\
	X(vector, 0)

/* Each is compiled in these forms; `again' is `none' a second time. */
#define FORMS(X, loop)							\
	X(loop, none) X(loop, again) X(loop, function) X(loop, id)	\
	X(loop, stap) X(loop, nop) X(loop, noted)			\
	X(loop, guarded_stap) X(loop, guarded_nop) X(loop, once_nop)	\
	X(loop, stub) X(loop, called)					\
	X(loop, guarded_stub) X(loop, guarded_called)

#define LENGTH 8192

struct input {
	const unsigned char *text;	/* LENGTH bytes, and the first zero */
	const int *numbers;		/* LENGTH of them */
	unsigned long sum;
	double factor;
};

typedef unsigned long loop(struct input *);
