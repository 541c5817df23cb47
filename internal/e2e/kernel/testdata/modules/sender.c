// SPDX-License-Identifier: BSD-2-Clause
/* A module of one file that needs the other one. */
#include <linux/module.h>

#include "parcel.h"

SDT_PROVIDER_DEFINE(sender);
SDT_PROBE_DEFINE1(sender, , , sent, "long");

static int __init sender_init(void)
{
	struct parcel p = { .weight = 3, .zone = 2 };

	SDT_PROBE1(sender, , , sent, parcel_price(&p));
	return 0;
}

static void __exit sender_exit(void)
{
	SDT_PROBE1(sender, , , sent, -1);
}

module_init(sender_init);
module_exit(sender_exit);
MODULE_DESCRIPTION("A module of one file");
MODULE_LICENSE("Dual BSD/GPL");
