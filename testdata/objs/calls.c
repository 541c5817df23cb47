/*
 * Probe calls and is-enabled tests in every position that a C compiler gives
 * its own code to: no argument to six, several sites of one probe, static
 * functions, loops, cold parts, tail calls, conditional tail calls, and a
 * section of its own. Freestanding: no header, no library.
 *
 * program.c calls every function; what they return depends on neither the
 * compiler nor the conversion.
 *
 * -DNO_REPEAT leaves out what makes clang keep a stub's address in a register
 * under -fno-plt (gotload.c is for that): probes in loops, and two sites of one
 * probe in a block.
 */
typedef unsigned long word;

#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))

extern void __dtrace_probe_plain(word);
extern void __dtrace_probe_calls___zero(void);
extern void __dtrace_probe_calls___one(word);
extern void __dtrace_probe_calls___two(word, word);
extern void __dtrace_probe_calls___three(word, word, word);
extern void __dtrace_probe_calls___four(word, word, word, word);
extern void __dtrace_probe_calls___five(word, word, word, word, word);
extern void __dtrace_probe_calls___six(word, word, word, word, word, word);
extern void __dtrace_probe_calls___again(word);
extern void __dtrace_probe_calls___entry__point(word);
extern void __dtrace_probe_calls___static(word);
extern void __dtrace_probe_calls___loop(word);
extern void __dtrace_probe_calls___cold(word);
extern void __dtrace_probe_calls___fail(word);
extern void __dtrace_probe_calls___tail(word);
extern void __dtrace_probe_calls___cond(word);
extern void __dtrace_probe_calls___either(word);
extern void __dtrace_probe_calls___guard(word, word);
extern void __dtrace_probe_calls___init(void);

extern int __dtrace_isenabled_calls___value(void);
extern int __dtrace_isenabled_calls___ctail(void);
extern int __dtrace_isenabled_calls___stored(void);
extern int __dtrace_isenabled_calls___guard(void);
extern int __dtrace_isenabled_calls___loop(void);
extern int __dtrace_isenabled_calls___cold(void);
extern int __dtrace_isenabled_calls___init(void);

volatile word calls_sink;
int calls_stored = 7;

/* No argument to six. */

NOINLINE word calls_zero(void)
{
	__dtrace_probe_calls___zero();
	return calls_sink + 1;
}

NOINLINE word calls_args(word a, word b, word c)
{
	__dtrace_probe_plain(a);
	__dtrace_probe_calls___one(a);
	__dtrace_probe_calls___two(a, b);
	__dtrace_probe_calls___three(a, b, c);
	__dtrace_probe_calls___four(a, b, c, 4);
	__dtrace_probe_calls___five(a, b, c, 4, a + b);
	__dtrace_probe_calls___six(a, b, c, 4, a + b, b + c);
	return a + b * c;
}

/* Several sites of one probe in one function. */

NOINLINE word calls_again(word a)
{
	__dtrace_probe_calls___again(a);
	calls_sink = a;
#ifndef NO_REPEAT
	__dtrace_probe_calls___again(a + 1);
	if (a > 3) {
		__dtrace_probe_calls___again(2);
		a *= 3;
	} else {
		__dtrace_probe_calls___again(3);
		a *= 5;
	}
#else
	a *= a > 3 ? 3 : 5;
#endif
	__dtrace_probe_calls___entry__point(a);
	return a + calls_sink;
}

/* Static functions: one that stays, one that is inlined twice. */

static NOINLINE word kept(word a)
{
	__dtrace_probe_calls___static(a);
	return a ^ 5;
}

static inline __attribute__((always_inline)) word inlined(word a)
{
	__dtrace_probe_calls___static(a + 100);
	return a + 2;
}

NOINLINE word calls_static(word a)
{
	return kept(a) + inlined(a);
}

NOINLINE word calls_static_too(word a)
{
	return inlined(a * 2) * kept(a);
}

/* Loops, with a test in one. */

NOINLINE word calls_loop(word n)
{
	word i, sum = 0;

	for (i = 0; i < n; i++) {
#ifndef NO_REPEAT
		__dtrace_probe_calls___loop(i);
#endif
		sum += i * i;
	}
	return sum;
}

NOINLINE word calls_test_loop(word n)
{
	word i, sum = 0;

	for (i = 0; i < n; i++) {
#ifndef NO_REPEAT
		if (__dtrace_isenabled_calls___loop())
			__dtrace_probe_calls___loop(sum);
#endif
		sum += i;
	}
	return sum;
}

/* Cold parts: a cold function, and the cold part of a hot one. */

COLD void calls_fail(word a)
{
	__dtrace_probe_calls___fail(a);
	calls_sink = a;
}

COLD int calls_cold_value(void)
{
	calls_sink = 1;
	return __dtrace_isenabled_calls___cold();
}

NOINLINE word calls_cold_part(word a, word b)
{
	if (__builtin_expect(a > 1000, 0)) {
		__dtrace_probe_calls___cold(a);
		calls_fail(b);
		if (__dtrace_isenabled_calls___cold())
			__dtrace_probe_calls___cold(b);
		return 1;
	}
	return a + b;
}

NOINLINE void calls_cold_tail(word a)
{
	if (__builtin_expect(a > 1000, 0)) {
		calls_fail(a);
		__dtrace_probe_calls___cold(a);
		return;
	}
	calls_sink = a;
}

/* Tail calls, the argument in place and not. */

NOINLINE void calls_tail(word a)
{
	calls_sink = a;
	__dtrace_probe_calls___tail(a);
}

NOINLINE void calls_tail_only(void)
{
	__dtrace_probe_calls___zero();
}

NOINLINE void calls_tail_six(word a, word b)
{
	__dtrace_probe_calls___six(b, a, 3, 4, 5, 6);
}

/* Conditional tail calls. */

NOINLINE void calls_cond(word a)
{
	if (a)
		__dtrace_probe_calls___cond(a);
}

NOINLINE void calls_cond_less(word a, word b)
{
	if (a < b)
		__dtrace_probe_calls___cond(a);
}

NOINLINE void calls_cond_signed(word a, long b)
{
	calls_sink = a;
	if (b >= 10)
		__dtrace_probe_calls___cond(a);
}

NOINLINE void calls_either(word a, word b)
{
	if (a == b)
		__dtrace_probe_calls___cond(a);
	else
		__dtrace_probe_calls___either(a);
}

/* Is-enabled tests: a guard, its reverse, a value, a tail, a conditional tail. */

NOINLINE word calls_guard(word a, word b)
{
	if (__dtrace_isenabled_calls___guard())
		__dtrace_probe_calls___guard(a + b, a - b);
	return a * b;
}

NOINLINE void calls_guard_tail(word a, word b)
{
	if (__dtrace_isenabled_calls___guard())
		__dtrace_probe_calls___guard(b, a);
}

NOINLINE word calls_not(word a)
{
	if (!__dtrace_isenabled_calls___guard())
		return a + 40;
	__dtrace_probe_calls___guard(a, a);
	return a;
}

NOINLINE int calls_both(int a)
{
	return (a && __dtrace_isenabled_calls___guard()) ||
	    __dtrace_isenabled_calls___value() ? 8 : 9;
}

NOINLINE void calls_store(void)
{
	calls_stored = __dtrace_isenabled_calls___stored();
}

NOINLINE word calls_arithmetic(word a)
{
	return a + 3 * (word)__dtrace_isenabled_calls___value();
}

NOINLINE int calls_value(void)
{
	return __dtrace_isenabled_calls___value();
}

NOINLINE int calls_cond_value(int a)
{
	if (a)
		return __dtrace_isenabled_calls___ctail();
	return 6;
}

NOINLINE int calls_cond_value_same(word a, word b, int c)
{
	if (a >= b)
		return __dtrace_isenabled_calls___ctail();
	return c;
}

/* A text section of its own that some loaders free after the start. */

NOINLINE __attribute__((section(".init.text"))) int calls_init(int a)
{
	__dtrace_probe_calls___init();
	if (__dtrace_isenabled_calls___init())
		return a;
	return a + 1;
}
