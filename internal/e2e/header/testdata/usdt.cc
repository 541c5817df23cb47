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

namespace {
struct hidden {
	int n;
	void fire()
	{
		USDT(shop, unnamed, n, this);
		auto lambda = [&](int x) { USDT_WITH_SEMA(shop, own, x, "text", &x); };
		lambda(n);
		DTRACE_PROBE1(shop___undeclared, int, n);
	}
	bool tested() { return USDT_IS_ACTIVE(shop, own) || USDT_SEMA_IS_ACTIVE(orders); }
};

template <class T> void same(T x)
{
	USDT(shop, unnamed, x, 0);
}
}

void usdt_cxx(void)
{
	hidden h = {3};
	h.fire();
	same(h.n);
	printf("unnamed %d\n", h.tested());
	outer::inner::all();
}
