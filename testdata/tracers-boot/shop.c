/*
 * Probes whose first argument is the number of the round; order__item is guarded. With
 * THEIRS they are those of SystemTap's macros.
 */
#ifdef THEIRS
#define _SDT_HAS_SEMAPHORES 1
#define SEMAPHORE(name) static unsigned short name##_semaphore __attribute__((used, section(".probes")))
#include <sys/sdt.h>
SEMAPHORE(shop_round);
SEMAPHORE(shop_order__item);
SEMAPHORE(shop_wide);
SEMAPHORE(shop_last);
#define ENABLED(name) __builtin_expect(*(volatile unsigned short *)&shop_##name##_semaphore, 0)
#define PROBE1(name, t, a) STAP_PROBE1(shop, name, a)
#define PROBE3(name, t, a, t2, b, t3, c) STAP_PROBE3(shop, name, a, b, c)
#define PROBE8(name, t, a, t2, b, t3, c, t4, d, t5, e, t6, f, t7, g, t8, h)		\
	STAP_PROBE8(shop, name, a, b, c, d, e, f, g, h)
#else
#include <sdt.h>
#define ENABLED(name) DTRACE_PROBE_ENABLED(shop___##name)
#define PROBE1(name, ...) DTRACE_PROBE1(shop___##name, __VA_ARGS__)
#define PROBE3(name, ...) DTRACE_PROBE3(shop___##name, __VA_ARGS__)
#define PROBE8(name, ...) DTRACE_PROBE8(shop___##name, __VA_ARGS__)
#endif

int shop_round(long n);

short shop_stock = -300;

__attribute__((noinline)) static void shop_last(long n)
{
	PROBE1(last, long, n);
}

__attribute__((noinline)) static void shop_wide(long n, int b, unsigned char c, short *stock)
{
	long on_stack[2] = { 1L << 40, n };

	__asm__ volatile ("" :: "r" (on_stack) : "memory");
	PROBE8(wide, long, n, int, b, unsigned char, c, short, *stock, int, -5, long, on_stack[0],
	    int, b - 1, unsigned short, (unsigned short)(65000 + n));
}

int shop_round(long n)
{
	int enabled = 0;

	PROBE1(round, long, n);
	if (ENABLED(order__item)) {
		PROBE3(order__item, long, n, int, (int)-n, unsigned char, (unsigned char)(200 + n));
		enabled = 1;
	}
	shop_wide(n, (int)(-2 * n), (unsigned char)(100 + n), &shop_stock);
	shop_last(n);
	return enabled;
}
