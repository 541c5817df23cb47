/* Functions that leave few registers for a tracepoint's arguments. */
#include <stdarg.h>

#include <sdt.h>

extern int registers_global[12];
void registers_use(void *);

#define ARGUMENT(i) ((i) % 2 ? x[i] + registers_global[i] : (signed char)(x[i] * y))
#if __SIZEOF_POINTER__ == 8
#define TWELVE										\
		DTRACE_PROBE12(registers___twelve, int, ARGUMENT(0), int, ARGUMENT(1),	\
		    int, ARGUMENT(2), int, ARGUMENT(3), int, ARGUMENT(4), int, ARGUMENT(5),	\
		    int, ARGUMENT(6), int, ARGUMENT(7), int, ARGUMENT(8), int, ARGUMENT(9),	\
		    int, ARGUMENT(10), int, ARGUMENT(11))
#else
#define TWELVE (void)0
#endif
#define TRACEPOINTS									\
	do {										\
		SDT_PROBE4(registers, , , four, ARGUMENT(0), ARGUMENT(1), ARGUMENT(2),	\
		    ARGUMENT(3));							\
		SDT_PROBE6(registers, , , six, ARGUMENT(0), ARGUMENT(1), ARGUMENT(2),	\
		    ARGUMENT(3), ARGUMENT(4), ARGUMENT(5));				\
		TWELVE;									\
	} while (0)

int registers_stack(volatile int *x, int y, ...);
long long registers_pairs(volatile int *x, long long a, long long b);

/* A frame, a stack that is aligned anew, and one that grows. */
int registers_stack(volatile int *x, int y, ...)
{
	__attribute__((aligned(64))) int aligned[16];
	char *grown = __builtin_alloca((unsigned)y);
	va_list rest;

	va_start(rest, y);
	registers_use(aligned);
	registers_use(grown);
	for (int i = 0; i < y; i++) {
		TRACEPOINTS;
		y += va_arg(rest, int) + aligned[i & 15];
	}
	registers_use(grown);
	va_end(rest);
	return aligned[y & 15];
}

/* Numbers in pairs of registers. */
long long registers_pairs(volatile int *x, long long a, long long b)
{
	long long sum = a * b;
	int y = (int)a;

	for (long long i = 0; i < b; i++) {
		sum = sum * a + i / b;
		TRACEPOINTS;
		sum ^= b << (i & 31);
	}
	return sum;
}

#ifndef __clang__
int registers_nested(volatile int *x, int y);

/* A register for the frame of the function around it. */
int registers_nested(volatile int *x, int y)
{
	int sum = y;
	int inner(int n)
	{
		TRACEPOINTS;
		return sum += n;
	}
	int (*volatile f)(int) = inner;

	return f(3);
}
#endif
