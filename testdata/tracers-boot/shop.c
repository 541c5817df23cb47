/* Probes whose first argument is the number of the round; order__item is guarded. */
#include <sdt.h>

int shop_round(long n);

short shop_stock = -300;

__attribute__((noinline)) static void shop_last(long n)
{
	DTRACE_PROBE1(shop___last, long, n);
}

__attribute__((noinline)) static void shop_wide(long n, int b, unsigned char c, short *stock)
{
	long on_stack[2] = { 1L << 40, n };

	__asm__ volatile ("" :: "r" (on_stack) : "memory");
	DTRACE_PROBE8(shop___wide, long, n, int, b, unsigned char, c, short, *stock, int, -5, long, on_stack[0],
	    int, b - 1, unsigned short, (unsigned short)(65000 + n));
}

int shop_round(long n)
{
	int enabled = 0;

	DTRACE_PROBE1(shop___round, long, n);
	if (DTRACE_PROBE_ENABLED(shop___order__item)) {
		DTRACE_PROBE3(shop___order__item, long, n, int, (int)-n, unsigned char, (unsigned char)(200 + n));
		enabled = 1;
	}
	shop_wide(n, (int)(-2 * n), (unsigned char)(100 + n), &shop_stock);
	shop_last(n);
	return enabled;
}
