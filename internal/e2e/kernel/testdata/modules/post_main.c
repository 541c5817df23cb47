// SPDX-License-Identifier: BSD-2-Clause
/* One of two files of a module: it exports a function. */
#include <linux/module.h>

#include "parcel.h"

SDT_PROVIDER_DEFINE(post);
SDT_PROBE_DEFINE2(post, , , price, "struct parcel *", "long");
SDT_PROBE_DEFINE1(post, , , refuse, "struct parcel *");
SDT_PROBE_DEFINE(post, , , open);

long parcel_price(const struct parcel *p)
{
	long price = parcel_check(p);

	if (price == 0)
		price = (long)p->weight * p->zone;
	if (SDT_PROBE_ENABLED(post, , , price))
		SDT_PROBE2(post, , , price, p, price);
	return price;
}
EXPORT_SYMBOL_GPL(parcel_price);

static int __init post_init(void)
{
	SDT_PROBE0(post, , , open);
	return 0;
}

static void __exit post_exit(void)
{
}

module_init(post_init);
module_exit(post_exit);
MODULE_DESCRIPTION("A module of two files");
MODULE_LICENSE("Dual BSD/GPL");
