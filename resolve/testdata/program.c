/* A program whose functions are hard to tell apart: the tests of this package
   link it in many ways, together with other.c, which has a helper() too. */
typedef struct { int a, b; } pair;

extern void gone(int) __attribute__((cold, noinline));
extern int other(int);
volatile int sink;

static __attribute__((noinline, noclone)) int helper(int x) { return sink += x; }

/* gcc: removed.isra.0, a clone without the unused part of its parameter */
static __attribute__((noinline)) int removed(pair *p) { return sink += p->a; }

/* gcc: constant.constprop.0 */
static __attribute__((noinline)) int constant(int x, int y) { sink += y; return y > 3 ? x * sink : sink + y; }

/* gcc: partial.part.0, what is left when the test is inlined into callers */
static int partial(int x)
{
	if (x == 0)
		return 0;
	for (int i = 0; i < x; i++) { sink += i * x; helper(i); sink ^= x; helper(sink); sink -= 3 * i; helper(x); }
	return sink;
}

/* gcc: divided.cold */
__attribute__((noinline)) int divided(int x)
{
	if (x > 1000) {
		gone(x);
		sink = 2 * x;
		gone(sink);
	}
	return helper(x);
}

__attribute__((noinline)) int aliased(int x) { return sink -= x; }
int alias_of(int) __attribute__((alias("aliased")));
int weak_alias_of(int) __attribute__((weak, alias("aliased")));
static int local_alias_of(int) __attribute__((used, alias("aliased")));
__attribute__((weak, noinline)) int weakly(int x) { return sink * x; }
__attribute__((visibility("hidden"), noinline)) int hidden(int x) { return sink + 7 * x; }

int caller_one(pair *p) { return removed(p) + constant(p->a, 17) + partial(p->b); }
int caller_two(pair *p) { p->a++; return removed(p) + constant(p->b, 17) + partial(p->a); }

int entry(int argc) { pair p = {argc, 1}; return caller_one(&p) + caller_two(&p) + divided(argc) + aliased(1) + weakly(2) + hidden(3) + other(argc); }

#ifndef LIBRARY
int main(int argc, char **argv) { return entry(argc); }
#endif

void gone(int x) { sink = x; }

/* Assembly: without size, without type, nested, with labels of all sorts. */
__asm__(
"	.text\n"
"	.balign 16\n"
"	.globl asm_sized\n	.type asm_sized, %function\n"
"asm_sized:\n	nop\n	nop\n	nop\n	nop\n	.size asm_sized, .-asm_sized\n"
"	.globl asm_typed\n	.type asm_typed, %function\n"
"asm_typed:\n	nop\n	nop\n	nop\n	nop\n"
"	.globl asm_plain\n"
"asm_plain:\n	nop\n	nop\n	nop\n	nop\n"
"asm_local:\n	nop\n	nop\n	nop\n	nop\n"
"	.globl asm_outer\n	.type asm_outer, %function\n"
"asm_outer:\n	nop\n	nop\n	nop\n	nop\n"
"	.globl asm_inner\n	.type asm_inner, %function\n"
"asm_inner:\n	nop\n	nop\n	nop\n	nop\n	.size asm_inner, .-asm_inner\n"
"	nop\n	nop\n"
"	.globl asm_label\n"
"asm_label:\n	nop\n	nop\n"
"1:	nop\n	nop\n"
".Lasm:	nop\n	nop\n"
"	.size asm_outer, .-asm_outer\n"
"	.globl asm_overlapped\n	.type asm_overlapped, %function\n"
"asm_overlapped:\n	nop\n	nop\n	nop\n	nop\n"
"	.globl asm_overlapping\n	.type asm_overlapping, %function\n"
"asm_overlapping:\n	nop\n	nop\n	.size asm_overlapped, .-asm_overlapped\n	nop\n	nop\n	.size asm_overlapping, .-asm_overlapping\n"
"	.balign 16\n");
