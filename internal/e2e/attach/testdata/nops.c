/* Marked nops in C. */
#include "nops.h"

char sdt_nops___none[8], sdt_nops___two[8], sdt_nops___four[8], sdt_nops___six[8];
char sdt_nops___generic[8], sdt_nops___inlined[8], sdt_nops___dead[8];

char nops_text[] = "text";
short nops_short = -300;
static unsigned char nops_byte = 200;

__attribute__((noinline)) static int nops_leaf(int n, unsigned char c)
{
	NOPS_PROBE0(none);
	NOPS_PROBE2(two, "%d %d", n, c);
	return n * c;
}

__attribute__((noinline)) static long nops_many(int a, long b, unsigned c, char *d)
{
	long on_stack[4] = { a, b, -7, 1L << (sizeof(long) == 8 ? 40 : 20) };

	__asm__ volatile ("" :: "r" (on_stack) : "memory");
	NOPS_PROBE6(six, "%d %ld %u %s %d %ld", a, b, c, d, nops_short, on_stack[3]);
	return on_stack[0];
}

void app_run(int n)
{
	char *text = nops_text;

	/* No tracer follows nops_text@GOTPCREL(%rip). */
	__asm__ volatile ("" : "+r" (text));
	nops_byte += (unsigned char)nops_leaf(-n, (unsigned char)(250 + n));
	NOPS_PROBE4(four, "%d %d %s %ld", nops_short, nops_byte, text, 1L << 20);
	nops_short += (short)nops_many(n, -n, 4000000000u + n, text);
	nops_cxx(n);
}

int nops_dead(int n)
{
	NOPS_PROBE1(dead, "%d", n);
	return n;
}
