/* The twin's stubs, which print what a tracer shall print. */
#include <stdio.h>

#define STUB(name) __attribute__((visibility("hidden"))) void __dtrace_probe_shop___##name

STUB(round)(long n) { printf("> round %ld\n", n); }
STUB(last)(long n) { printf("> last %ld\n", n); }
STUB(order__item)(long n, int b, unsigned char c) { printf("> order__item %ld %d %d\n", n, b, c); }
STUB(wide)(long n, int b, unsigned char c, short d, int e, long f, int g, unsigned short h)
{
	printf("> wide %ld %d %d %d %d %ld %d %d\n", n, b, c, d, e, f, g, h);
}
__attribute__((visibility("hidden"))) int __dtrace_isenabled_shop___order__item(void) { return 1; }
