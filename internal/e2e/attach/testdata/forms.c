/*
 * Arguments of each kind, for what compilers write as their operands. It is compiled many times: -DNAME=... is the
 * function, and the macros are SystemTap's, or with -DSDT those of sdt.h, or with -DHEADER those of a provider file.
 * The name of a probe has the value of its last argument, or behind p and t, of a temporary object, the first word that this
 * leads to.
 */
#ifdef SDT
#include <sdt.h>
#define FIRE(name, x) DTRACE_PROBE1(name, int, x)
#define PROBE(value, x) FIRE(forms___v##value, x)
#elif defined(HEADER)
#include "forms.h"
#define PROBE(value, x) FORMS_V##value(x)
#else
#include <sys/sdt.h>
#define PROBE(value, x) STAP_PROBE1(forms, v##value, x)
#endif

#define GLUE(a, b) a##b
#define PASTE(a, b) GLUE(a, b)
#define GLOBAL(name) PASTE(NAME, name)
#define UNKNOWN(x) __asm__ volatile("" : "+r"(x) : : "memory")

struct item {
	long word;
	int number;
	short half;
	signed char byte;
	unsigned field : 5;
	int more : 11;
};

static int number;
static signed char byte;
static long word;
static struct item item;
static int array[8];
static struct { int first, second; } pairs[8];
static __thread int local;
static __thread int locals[8];
static int *pointer = &number;
static int lone, early[8];
int GLOBAL(_global);
__thread int GLOBAL(_thread);

static void __attribute__((noinline)) variables(void)
{
	PROBE(1, number);
	PROBE(2, byte);
	PROBE(3, word);
	PROBE(4, item.number);
	PROBE(5, array[3]);
	PROBE(6, pairs[2].second);
	PROBE(1, *pointer);
	PROBE(7, GLOBAL(_global));
	PROBE(8, item.field + 0);
	PROBE(9, item.byte);
	PROBE(10, 10);
}

/* A variable with nothing beside it: machines whose addresses take two instructions have half of one in the operand. */
static void __attribute__((noinline)) alone(void) { PROBE(14, lone); }
static void __attribute__((noinline)) alone3(void) { PROBE(15, early[1]); }

static void __attribute__((noinline)) threads(void)
{
	PROBE(11, local);
	PROBE(12, locals[2]);
	PROBE(13, GLOBAL(_thread));
}

static void __attribute__((noinline)) elements(long i, int j, unsigned k)
{
	PROBE(5, array[i]);
	PROBE(5, array[j]);
	PROBE(5, array[k]);
	PROBE(6, pairs[i - 1].second);
}

static void __attribute__((noinline)) element(int *t, long i) { PROBE(5, t[i]); }
static void __attribute__((noinline)) bytes(signed char *t, long i) { PROBE(9, t[i]); }
static void __attribute__((noinline)) words(long *t, long i) { PROBE(3, t[i]); }

static void __attribute__((noinline)) structures(struct item value, struct item *given, int *last)
{
	PROBE(21, value.word);
	PROBE(22, value.number);
	PROBE(23, value.half);
	PROBE(24, value.byte);
	PROBE(25, value.field + 0);
	PROBE(26, value.more + 0);
	PROBE(4, given->number);
	PROBE(9, given->byte);
	PROBE(8, given->field + 0);
	PROBE(5, last[-1]);
}

static void __attribute__((noinline)) registers(int a, signed char b, long c, int d)
{
	int e = a + 1, f = a + 2, g = a + 3, h = a + 4, i = a + 5, j = a + 6, k = a + 7, l = a + 8, m = a + 9, n = a + 10;

	UNKNOWN(e); UNKNOWN(f); UNKNOWN(g); UNKNOWN(h); UNKNOWN(i); UNKNOWN(j); UNKNOWN(k); UNKNOWN(l); UNKNOWN(m); UNKNOWN(n);
	PROBE(31, a);
	PROBE(32, b);
	PROBE(33, c);
	PROBE(34, d);
	PROBE(35, e + 3);
	PROBE(36, f + 3);
	PROBE(37, (signed char)(g + 3));
	PROBE(38, h + 3);
	PROBE(39, i + 3);
	PROBE(40, (short)(j + 3));
	PROBE(41, k + 3);
	PROBE(42, l + 3);
	PROBE(43, m + 3);
	PROBE(44, (signed char)(n + 3));
	PROBE(45, e + f + g + h + i + j + k + l + m + n - 320);
}

#ifdef HEADER
struct large { long first, second, third; };
struct small { short half, other; };
union eight { double real; char bytes[8]; };

static struct large made(long first)
{
	struct large l = { first, 0, 0 };

	return l;
}

static void __attribute__((noinline)) others(struct large l, struct small s, union eight u, float f, double d, long double e, int last)
{
	struct large none = { 50, 0, 0 };

	FORMS_P50(none);
	FORMS_P51(l);
	FORMS_T56(made(last + 3));
	FORMS_V53(s, u, f, d, e, l, last);
	FORMS_V1069547520(f);
	FORMS_V4612811918334230528(d);
	FORMS_V4612811918334230528(u);
#ifdef __SIZEOF_INT128__
	{
		__int128 wide = 54;

		FORMS_V54(wide, wide + last, last + 1);
		FORMS_T55((wide + 1) | ((wide + 1) << 64));
	}
#endif
}
#endif

#ifdef __cplusplus
extern "C"
#endif
void NAME(void)
{
	struct item value = { 21, 22, 23, 24, 25, 26 };
	long i = 3;

	number = 1, byte = 2, word = 3, item.number = 4, array[3] = 5, pairs[2].second = 6, GLOBAL(_global) = 7;
	item.field = 8, item.byte = 9, local = 11, locals[2] = 12, GLOBAL(_thread) = 13, lone = 14, early[1] = 15;
	UNKNOWN(i);
	variables();
	alone();
	alone3();
	threads();
	elements(i, i, i);
	element(array, i);
	bytes(&item.byte - 3, i);
	words(&word - 3, i);
	structures(value, &item, array + 4);
	registers(31, 32, 33, 34);
#ifdef HEADER
	{
		struct large l = { 51, 0, 0 };
		struct small s = { 1, 2 };
		union eight u;

		u.real = 2.5;
		others(l, s, u, 1.5f, 2.5, 3.5L, 53);
	}
#endif
}
