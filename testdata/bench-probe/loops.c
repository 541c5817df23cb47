/*
 * Loops with a probe in each iteration. scripts/bench-probe compiles this file
 * for each FORM, which ends the functions' names. WAY says how a probe is written,
 * and GUARDED whether there is an is-enabled test before each, or one before the loop.
 */
#include "loops.h"

#define JOIN(a, b) JOINED(a, b)
#define JOINED(a, b) a##_##b
#define NAME(loop) JOIN(loop, FORM)
#define LOOP(name) loop NAME(name); unsigned long NAME(name)(struct input *in)
#define NEVER(x) __builtin_expect((x) != 0, 0)

#define NOT 0
#define EACH_TIME 1
#define ONCE 2

#define WAY_NONE 0
#define WAY_FUNCTION 1
#define WAY_ID 2
#define WAY_STAP 3
#define WAY_SDT 4

typedef unsigned long word;

#if WAY == WAY_NONE
#define PROBE0(name) ((void)0)
#define PROBE2(name, a, b) ((void)0)
#define PROBE6(name, a, b, c, d, e, f) ((void)0)

#elif WAY == WAY_FUNCTION
/* A pointer that a tracer sets. */
#define DECLARE_0 (void)
#define DECLARE_2 (word, word)
#define DECLARE_6 (word, word, word, word, word, word)
#define DECLARE(name, n) extern void (*function_##name) DECLARE_##n;
LOOPS(DECLARE)
#define PROBE0(name) do { if (NEVER(function_##name)) function_##name(); } while (0)
#define PROBE2(name, a, b) do { if (NEVER(function_##name)) function_##name((word)(a), (word)(b)); } while (0)
#define PROBE6(name, a, b, c, d, e, f) do { if (NEVER(function_##name))		\
	function_##name((word)(a), (word)(b), (word)(c), (word)(d), (word)(e), (word)(f)); } while (0)

#elif WAY == WAY_ID
/* A number that a tracer sets, and one function for all probes. */
#define DECLARE(name, n) extern word id_##name;
LOOPS(DECLARE)
extern void (*hook)(word id, word, word, word, word, word, word);
#define PROBE0(name) PROBE6(name, 0, 0, 0, 0, 0, 0)
#define PROBE2(name, a, b) PROBE6(name, a, b, 0, 0, 0, 0)
#define PROBE6(name, a, b, c, d, e, f) do { if (NEVER(id_##name))		\
	hook(id_##name, (word)(a), (word)(b), (word)(c), (word)(d), (word)(e), (word)(f)); } while (0)

#elif WAY == WAY_STAP
#if GUARDED
#define _SDT_HAS_SEMAPHORES 1
#endif
#include <sys/sdt.h>
#if GUARDED
#define DECLARE(name, n) unsigned short bench_##name##_semaphore __attribute__((section(".probes")));
LOOPS(DECLARE)
#define ENABLED(name) NEVER(*(volatile unsigned short *)&bench_##name##_semaphore)
#endif
#define FIRE0(name) STAP_PROBE(bench, name)
#define FIRE2(name, a, b) STAP_PROBE2(bench, name, a, b)
#define FIRE6(name, a, b, c, d, e, f) STAP_PROBE6(bench, name, a, b, c, d, e, f)

#elif WAY == WAY_SDT
#include <sdt.h>
#define ENABLED(name) SDT_PROBE_ENABLED(bench, , , name)
#define FIRE0(name) SDT_PROBE0(bench, , , name)
#define FIRE2(name, a, b) SDT_PROBE2(bench, , , name, a, b)
#define FIRE6(name, a, b, c, d, e, f) SDT_PROBE6(bench, , , name, a, b, c, d, e, f)
#endif

#if GUARDED == ONCE
#define TEST(name) const int enabled = ENABLED(name)
#define TESTED(name) NEVER(enabled)
#else
#define TEST(name) ((void)0)
#if GUARDED == EACH_TIME
#define TESTED(name) ENABLED(name)
#else
#define TESTED(name) 1
#endif
#endif

#ifdef FIRE0
#define PROBE0(name) do { if (TESTED(name)) FIRE0(name); } while (0)
#define PROBE2(name, a, b) do { if (TESTED(name)) FIRE2(name, a, b); } while (0)
#define PROBE6(name, a, b, c, d, e, f) do { if (TESTED(name)) FIRE6(name, a, b, c, d, e, f); } while (0)
#endif

static inline word mix(word hash, word c) { return (hash << 5 | hash >> 59) ^ c; }

LOOP(none_passed)
{
	const unsigned char *s = in->text;
	word c, hash = 0;
	TEST(none_passed);

	while ((c = *s++) != 0) {
		hash = mix(hash, c);
		PROBE0(none_passed);
	}
	return hash;
}

LOOP(registers_2)
{
	const unsigned char *s = in->text;
	word c, hash = 0;
	TEST(registers_2);

	while ((c = *s++) != 0) {
		hash = mix(hash, c);
		PROBE2(registers_2, hash, c);
	}
	return hash;
}

LOOP(registers_6)
{
	const unsigned char *s = in->text;
	word c, hash = 0, sum = 0, spaces = 0, bits = 0;
	TEST(registers_6);

	while ((c = *s++) != 0) {
		hash = mix(hash, c);
		sum += c;
		spaces += c == ' ';
		bits |= c;
		PROBE6(registers_6, hash, c, sum, spaces, bits, s);
	}
	return hash ^ sum ^ spaces ^ bits;
}

LOOP(computed_2)
{
	const unsigned char *s = in->text;
	word c, hash = 0;
	TEST(computed_2);

	while ((c = *s++) != 0) {
		hash = mix(hash, c);
		PROBE2(computed_2, s - in->text, in->numbers[c]);
	}
	return hash;
}

LOOP(computed_6)
{
	const unsigned char *s = in->text;
	word c, hash = 0;
	TEST(computed_6);

	while ((c = *s++) != 0) {
		hash = mix(hash, c);
		PROBE6(computed_6, s - in->text, in->numbers[c], hash % 1024, c * c, in->numbers[hash % 256], s + LENGTH);
	}
	return hash;
}

/* The probe is the last that a function does. */
void NAME(step)(struct input *in, word c);
__attribute__((noinline)) void NAME(step)(struct input *in, word c)
{
	word sum = mix(in->sum, c);
	TEST(tail_call);

	in->sum = sum;
	PROBE2(tail_call, sum, c);
}

LOOP(tail_call)
{
	const unsigned char *s = in->text;
	word c;

	in->sum = 0;
	while ((c = *s++) != 0)
		NAME(step)(in, c);
	return in->sum;
}

/* The sum is in memory that others can reach. */
LOOP(memory)
{
	const int *numbers = in->numbers;
	size_t i;
	TEST(memory);

	in->sum = 0;
	for (i = 0; i < LENGTH; i++) {
		in->sum = mix(in->sum, (word)numbers[i]);
		PROBE0(memory);
	}
	return in->sum;
}

/* More values than registers that outlive a call. */
LOOP(many_values)
{
	const unsigned char *s = in->text;
	word c, a = 0, b = 1, d = 2, e = 3, f = 4, g = 5, h = 6, i = 7, j = 8;
	TEST(many_values);

	while ((c = *s++) != 0) {
		a += c;
		b ^= a;
		d += b;
		e ^= d;
		f += e;
		g ^= f;
		h += g;
		i ^= h;
		j += i;
		PROBE0(many_values);
	}
	return a ^ b ^ d ^ e ^ f ^ g ^ h ^ i ^ j;
}

/* On amd64 no floating-point register outlives a call. */
LOOP(floating)
{
	const unsigned char *s = in->text;
	double sum = 0, factor = in->factor;
	word c;
	TEST(floating);

	while ((c = *s++) != 0) {
		sum = sum * factor + 1;
		PROBE0(floating);
	}
	return (word)sum;
}

/* Without a probe, one instruction adds several numbers. */
LOOP(vector)
{
	const int *numbers = in->numbers;
	unsigned sum = 0;
	size_t i;
	TEST(vector);

	for (i = 0; i < LENGTH; i++) {
		sum += (unsigned)numbers[i];
		PROBE0(vector);
	}
	return sum;
}
