/*
 * A program that runs every kind of probed function and prints what they
 * return. The output is the same for any compiler, linker and conversion:
 * program.expect. Linked from program.c, program2.cc, calls.c, comdat.cc and
 * probes.c; the unconverted twin needs stubs.c as well.
 */
#include <stdio.h>

typedef unsigned long word;

#define NOINLINE __attribute__((noinline))

extern void __dtrace_probe_program___start(int);
extern void __dtrace_probe_program___step(int, word);
extern void __dtrace_probe_program___tail(word);
extern void __dtrace_probe_program___done(word);
extern int __dtrace_isenabled_program___step(void);
extern int __dtrace_isenabled_program___value(void);

/* calls.c */
extern volatile word calls_sink;
extern int calls_stored;
word calls_zero(void);
word calls_args(word a, word b, word c);
word calls_again(word a);
word calls_static(word a);
word calls_static_too(word a);
word calls_loop(word n);
word calls_test_loop(word n);
void calls_fail(word a);
int calls_cold_value(void);
word calls_cold_part(word a, word b);
void calls_cold_tail(word a);
void calls_tail(word a);
void calls_tail_only(void);
void calls_tail_six(word a, word b);
void calls_cond(word a);
void calls_cond_less(word a, word b);
void calls_cond_signed(word a, long b);
void calls_either(word a, word b);
word calls_guard(word a, word b);
void calls_guard_tail(word a, word b);
word calls_not(word a);
int calls_both(int a);
void calls_store(void);
word calls_arithmetic(word a);
int calls_value(void);
int calls_cond_value(int a);
int calls_cond_value_same(word a, word b, int c);
int calls_init(int a);

/* comdat.cc, program2.cc */
word comdat_all(void);
word program2_all(void);

static word total;

static NOINLINE void step(int number, word value)
{
	if (__dtrace_isenabled_program___step())
		printf("step %d is traced\n", number);
	__dtrace_probe_program___step(number, value);
	total = (total * 31 + value) & 0xffffff;
	printf("step %d: %lu\n", number, value);
}

NOINLINE void program_tail(word a)
{
	total += a;
	__dtrace_probe_program___tail(a);
}

NOINLINE int program_value(void)
{
	return __dtrace_isenabled_program___value();
}

/* No one calls it: --gc-sections drops it, and its records with it. */
NOINLINE word program_dead(word a)
{
	__dtrace_probe_program___tail(a);
	__dtrace_probe_program___step(-1, a);
	return a;
}

#define MIX(v) (sum = sum * 31 + (word)(v), sum &= 0xffffff)

static word calls_all(void)
{
	word sum = 1;

	calls_sink = 0;
	MIX(calls_zero());
	MIX(calls_args(3, 4, 5));
	MIX(calls_again(3));
	MIX(calls_again(4));
	MIX(calls_static(6));
	MIX(calls_static_too(7));
	MIX(calls_loop(10));
	MIX(calls_test_loop(10));
	calls_fail(11);
	MIX(calls_sink);
	MIX(calls_cold_value());
	MIX(calls_cold_part(5, 6));
	MIX(calls_cold_part(1005, 6));
	calls_cold_tail(9);
	MIX(calls_sink);
	calls_cold_tail(1009);
	MIX(calls_sink);
	calls_tail(12);
	MIX(calls_sink);
	calls_tail_only();
	calls_tail_six(1, 2);
	calls_cond(0);
	calls_cond(1);
	calls_cond_less(1, 2);
	calls_cond_less(2, 1);
	calls_cond_signed(13, -1);
	MIX(calls_sink);
	calls_cond_signed(14, 10);
	MIX(calls_sink);
	calls_either(1, 1);
	calls_either(1, 2);
	MIX(calls_guard(15, 16));
	calls_guard_tail(1, 2);
	MIX(calls_not(17));
	MIX(calls_both(0));
	MIX(calls_both(1));
	calls_store();
	MIX(calls_stored);
	MIX(calls_arithmetic(18));
	MIX(calls_value());
	MIX(calls_cond_value(0));
	MIX(calls_cond_value(1));
	MIX(calls_cond_value_same(1, 2, 19));
	MIX(calls_cond_value_same(2, 1, 19));
	MIX(calls_init(20));
	return sum;
}

int main(int argc, char **argv)
{
	int i;

	(void)argv;
	__dtrace_probe_program___start(argc);
	step(1, calls_all());
	step(2, comdat_all());
	step(3, program2_all());
	step(4, (word)program_value());
	for (i = 5; i < 8; i++) {
		program_tail((word)i);
		step(i, total);
	}
	step(8, calls_all());
	__dtrace_probe_program___done(total);
	printf("total: %lu\n", total);
	return 0;
}
