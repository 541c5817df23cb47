#include "shop.h"

/* The same in every object. */
inline __attribute__((noinline)) int
shared(int n)
{
	SHOP_WEIGHED(n, 1L);
	return n + 1;
}

static __attribute__((noinline)) int
place(int n)
{
	BANK__PAID(n);
	return n;
}

extern "C" int FIRST(int n);

int
FIRST(int n)
{
	return shared(n) + place(n);
}
