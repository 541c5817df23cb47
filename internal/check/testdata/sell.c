/* Probes of a provider file: sell is always there, dead nowhere called. */
#include "program.h"
#include "shop.h"
#ifdef NO_PROBES
#undef SHOP_SOLD
#define SHOP_SOLD(n)
#endif

C int __attribute__((noinline)) sell(int n)
{
	SHOP_SOLD(n);
	if (SHOP_ORDER_PLACED_ENABLED())
		SHOP_ORDER_PLACED(n, "milk");
	return n + 1;
}

C int __attribute__((noinline)) dead(int n)
{
	SHOP_DEAD(3 * n);
	return n + 2;
}
