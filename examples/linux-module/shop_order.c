// SPDX-License-Identifier: BSD-2-Clause
/*
 * An order of the shop, with a probe in each kind of function that a compiler
 * makes something else of: a static one, one that is inlined twice, a cold one,
 * one that is split into a hot and a cold part, and one that ends with a probe
 * and so with a jump.
 */
#include <linux/compiler.h>
#include <linux/errno.h>

#include "shop.h"

static long shop_stock;

static __always_inline long price(int items)
{
	long sum = 250L * items;

	shop_count(SHOP_PRICE);
	SDT_PROBE1(shop, , , price, sum);
	return sum;
}

static noinline int order_start(unsigned long id)
{
	int items = id % 10;

	shop_count(SHOP_START);
	SDT_PROBE2(shop, , , order__start, id, items);
	return items;
}

static noinline __cold int order_refuse(unsigned long id, int error)
{
	shop_count(SHOP_REFUSE);
	SDT_PROBE2(shop, , , refuse, id, error);
	return error;
}

static noinline long order_sell(unsigned long id, int items)
{
	if (unlikely(items == 0))
		return order_refuse(id, -EINVAL);
	return price(items);
}

static noinline __cold void restock(void)
{
	WRITE_ONCE(shop_stock, 100);
}

/* What begins with the call of a cold function, gcc puts into another section. */
static noinline long order_give(unsigned long id, int items)
{
	long sum = price(-items);

	if (id % 100 == 99) {
		restock();
		shop_count(SHOP_SHORT);
		SDT_PROBE1(shop, , , short__of__stock, id);
	}
	return sum + READ_ONCE(shop_stock);
}

static noinline void order_audit(unsigned long id, int items)
{
	if (SDT_PROBE_ENABLED(shop, , , audit)) {
		shop_count(SHOP_AUDIT);
		SDT_PROBE7(shop, , , audit, 0, -1, items, 3, 4, 5, id + 7);
	}
}

static noinline void order_done(unsigned long id, int items)
{
	shop_count(SHOP_DONE);
	SDT_PROBE3(shop, , , order__done, id, -items, (u64)id << 40);
}

void shop_order(unsigned long id)
{
	int items = order_start(id);

	if (order_sell(id, items) >= 0)
		order_give(id, items);
	order_audit(id, items);
	order_done(id, items);
}
