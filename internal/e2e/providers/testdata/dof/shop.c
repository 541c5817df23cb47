#include "shop.h"

int count;

/* Each form of a site: a call, one as the last statement, one behind a condition, tests. */
static __attribute__((noinline)) int
place(int n, char *name)
{
	SHOP_ORDER_PLACED(n, name);
	count += n;
	SHOP_WEIGHED(n, 3L * n);
	return count;
}

__attribute__((noinline)) void
last(int n)
{
	count++;
	BANK__PAID(n);
}

__attribute__((noinline)) void
perhaps(int n)
{
	if (n > 5)
		SHOP_EMPTY();
}

__attribute__((noinline)) int
tested(int n)
{
	if (SHOP_WIDE_ENABLED()) {
		SHOP_WIDE(n, 2, 3, 4, 5, 6, 7, 8L << 40);
		return n + 10000;
	}
	return n;
}

int
armed(int n)
{
	count += n;
	return SHOP_WIDE_ENABLED();
}

int work(int n);

int
work(int n)
{
	int sum = 0, i;
	for (i = 0; i < n; i++) {
		sum += place(i, "milk");
		last(i);
		perhaps(i);
		sum += tested(i);
	}
	return sum;
}
