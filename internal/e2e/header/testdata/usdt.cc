#include "usdt_inline.h"

namespace outer { namespace inner {
struct counter {
	int n;
	void count(int by)
	{
		USDT_WITH_EXPLICIT_SEMA(orders, shop, member, n, by);
		n += by;
		auto lambda = [&](int x) { USDT(shop, lambda, x, n); };
		lambda(by);
	}
};

template <class T> T twice(T x)
{
	USDT(shop, in_template, x);
	return x + x;
}

static void all()
{
	counter c = {4};
	c.count(twice(2));
	usdt_inline(c.n);
	printf("orders %d\n", USDT_SEMA_IS_ACTIVE(orders));
}
}}

void usdt_cxx(void)
{
	outer::inner::all();
}
