/*
 * Every macro of SDT(9) in both generations, and those of illumos. Each
 * tracepoint is run once, so that calls of stubs are as many as sites.
 */
#include <stdbool.h>
#include <stddef.h>

#include <sdt.h>

#define NOINLINE __attribute__((noinline))

SDT_PROVIDER_DECLARE(hdr);
SDT_PROVIDER_DEFINE(hdr);
SDT_PROVIDER_DEFINE(two__words);

SDT_PROBE_DEFINE(hdr, , , n);
SDT_PROBE_DEFINE0(hdr, , , n0);
SDT_PROBE_DEFINE1(hdr, , , n1, "t0");
SDT_PROBE_DEFINE2(hdr, , , n2, "t0", "t1");
SDT_PROBE_DEFINE3(hdr, , , n3, "t0", "t1", "t2");
SDT_PROBE_DEFINE4(hdr, , , n4, "t0", "t1", "t2", "t3");
SDT_PROBE_DEFINE5(hdr, , , n5, "t0", "t1", "t2", "t3", "t4");
SDT_PROBE_DEFINE6(hdr, , , n6, "t0", "t1", "t2", "t3", "t4", "t5");
SDT_PROBE_DEFINE7(hdr, , , n7, "t0", "t1", "t2", "t3", "t4", "t5", "t6");

SDT_PROBE_DEFINE(hdr, , , o, o-old);
SDT_PROBE_DEFINE0(hdr, , , o0, o0-old);
SDT_PROBE_DEFINE1(hdr, , , o1, o1-old, "t0");
SDT_PROBE_DEFINE2(hdr, , , o2, o2-old, "t0", "t1");
SDT_PROBE_DEFINE3(hdr, , , o3, o3-old, "t0", "t1", "t2");
SDT_PROBE_DEFINE4(hdr, , , o4, o4-old, "t0", "t1", "t2", "t3");
SDT_PROBE_DEFINE5(hdr, , , o5, o5-old, "t0", "t1", "t2", "t3", "t4");
SDT_PROBE_DEFINE6(hdr, , , o6, o6-old, "t0", "t1", "t2", "t3", "t4", "t5");
SDT_PROBE_DEFINE7(hdr, , , o7, o7-old, "t0", "t1", "t2", "t3", "t4", "t5", "t6");

SDT_PROBE_DEFINE0_XLATE(hdr, , , x0);
SDT_PROBE_DEFINE1_XLATE(hdr, , , x1, "t0", "x0");
SDT_PROBE_DEFINE2_XLATE(hdr, , , x2, "t0", "x0", "t1", "x1");
SDT_PROBE_DEFINE3_XLATE(hdr, , , x3, "t0", "x0", "t1", "x1", "t2", "x2");
SDT_PROBE_DEFINE4_XLATE(hdr, , , x4, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3");
SDT_PROBE_DEFINE5_XLATE(hdr, , , x5, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3", "t4", "x4");
SDT_PROBE_DEFINE6_XLATE(hdr, , , x6, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3", "t4", "x4", "t5", "x5");
SDT_PROBE_DEFINE7_XLATE(hdr, , , x7, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3", "t4", "x4", "t5", "x5",
    "t6", "x6");

SDT_PROBE_DEFINE0_XLATE(hdr, , , y0, y0-old);
SDT_PROBE_DEFINE1_XLATE(hdr, , , y1, y1-old, "t0", "x0");
SDT_PROBE_DEFINE2_XLATE(hdr, , , y2, y2-old, "t0", "x0", "t1", "x1");
SDT_PROBE_DEFINE3_XLATE(hdr, , , y3, y3-old, "t0", "x0", "t1", "x1", "t2", "x2");
SDT_PROBE_DEFINE4_XLATE(hdr, , , y4, y4-old, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3");
SDT_PROBE_DEFINE5_XLATE(hdr, , , y5, y5-old, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3", "t4", "x4");
SDT_PROBE_DEFINE6_XLATE(hdr, , , y6, y6-old, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3", "t4", "x4", "t5", "x5");
SDT_PROBE_DEFINE7_XLATE(hdr, , , y7, y7-old, "t0", "x0", "t1", "x1", "t2", "x2", "t3", "x3", "t4", "x4", "t5", "x5",
    "t6", "x6");

/* Names that are macros elsewhere, parts that are empty, and dashes. */
#define errno (*headertest_errno())
#define macro oh, no
SDT_PROBE_DEFINE1(hdr, macro, errno, errno, "int");
SDT_PROBE_DEFINE1(two__words, , func, a__b, "char *");
SDT_PROBE_DEFINE5(hdr, , , widths, "char", "short", "int", "long", "long long");
SDT_PROBE_DEFINE7(hdr, , , kinds, "enum kind", "bool", "void *", "const volatile void *", "uint8_t", "char *", "int");
SDT_PROBE_DEFINE1(hdr, , , elsewhere, "int");
SDT_PROBE_DEFINE0(hdr, , , loop);
SDT_PROBE_DECLARE(hdr, , , from__cxx);

enum kind { MINUS = -7 };
struct fields {
	int narrow : 3;
	bool flag;
	unsigned char byte;
	const volatile void *place;
	char text[4];
};

int headertest_sink;
int headertest_c(void);
int headertest_dead(int);

/* The linker drops it when it collects garbage. */
int headertest_dead(int a)
{
	DTRACE_PROBE1(dead___code, int, a);
	SDT_PROBE0(hdr, , , n);
	return a + headertest_sink;
}

static NOINLINE void numbers(void)
{
	SDT_PROBE0(hdr, , , n0);
	SDT_PROBE1(hdr, , , n1, 1);
	SDT_PROBE2(hdr, , , n2, 1, 2);
	SDT_PROBE3(hdr, , , n3, 1, 2, 3);
	SDT_PROBE4(hdr, , , n4, 1, 2, 3, 4);
	SDT_PROBE5(hdr, , , n5, 1, 2, 3, 4, 5);
	SDT_PROBE6(hdr, , , n6, 1, 2, 3, 4, 5, 6);
	SDT_PROBE7(hdr, , , n7, 1, 2, 3, 4, 5, 6, 7);
	SDT_PROBE(hdr, , , o, 1, 2, 3, 4, 5);
	SDT_PROBE1(hdr, , , o1, 1);
	SDT_PROBE1(hdr, , , x1, 1);
	SDT_PROBE1(hdr, macro, errno, errno, 1);
}

static NOINLINE void kinds(struct fields *f, enum kind kind)
{
	SDT_PROBE1(two__words, , func, a__b, f->text == NULL);
	SDT_PROBE5(hdr, , , widths, (char)'x', (short)-2, f->narrow, -4L, -5LL);
	SDT_PROBE7(hdr, , , kinds, kind, f->flag, NULL, f->place, f->byte, (char *)NULL, f->narrow == -2);
	if (SDT_PROBE_ENABLED(hdr, , , from__cxx))
		SDT_PROBE0(hdr, , , from__cxx);
	else
		headertest_sink++;
}

static NOINLINE void illumos(int a, const char *p)
{
	DTRACE_PROBE(plain);
	DTRACE_PROBE(a__b___c__d___e);
	DTRACE_PROBE(errno);
	DTRACE_PROBE1(tcp___send, int, a);
	if (DTRACE_PROBE_ENABLED(tcp___send))
		DTRACE_PROBE1(tcp___send, int, a + 1);
	DTRACE_PROBE2(d___2, int, a, const char *, p);
	DTRACE_PROBE3(d___3, int, a, const char *, p, int, 3);
	DTRACE_PROBE4(d___4, int, 1, int, 2, int, 3, int, 4);
	DTRACE_PROBE5(d___5, int, 1, int, 2, int, 3, int, 4, int, 5);
	DTRACE_PROBE6(d___6, int, 1, int, 2, int, 3, int, 4, int, 5, int, 6);
	DTRACE_PROBE7(d___7, int, 1, int, 2, int, 3, int, 4, int, 5, int, 6, int, 7);
	DTRACE_PROBE8(d___8, int, 1, int, 2, int, 3, int, 4, int, 5, int, 6, int, 7, int, 8);
	DTRACE_PROBE9(d___9, int, 1, int, 2, int, 3, int, 4, int, 5, int, 6, int, 7, int, 8, int, 9);
	DTRACE_PROBE10(d___10, int, 1, int, 2, int, 3, int, 4, int, 5, int, 6, int, 7, int, 8, int, 9, int, 10);
	DTRACE_PROBE11(d___11, int, 1, int, 2, int, 3, int, 4, int, 5, int, 6, int, 7, int, 8, int, 9, int, 10, int, 11);
	DTRACE_PROBE12(d___12, int, 1, int, 2, int, 3, int, 4, int, 5, int, 6, int, 7, int, 8, int, 9, int, 10, int, 11,
	    int, 12);
}

/* -fno-plt keeps the address of what a loop calls in a register, but for hidden functions. */
static NOINLINE void loop(int n)
{
	do {
		SDT_PROBE0(hdr, , , loop);
		__asm__ __volatile__("" : "+r"(n));
	} while (n-- > 0);
}

int headertest_c(void)
{
	struct fields f = { .narrow = -2, .flag = true, .byte = 200, .text = "abc" };

	numbers();
	kinds(&f, MINUS);
	illumos(1, NULL);
	loop(0);
	return 0;
}
