/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHOP_H
#define SHOP_H

#include <linux/atomic.h>
#include <linux/types.h>

#include <sdt.h>

/*
 * The module counts how often it reaches each probe, so that what a tracer
 * sees can be compared with it.
 */
enum shop_probe {
	SHOP_OPEN,
	SHOP_START,
	SHOP_PRICE,
	SHOP_REFUSE,
	SHOP_SHORT,
	SHOP_DONE,
	SHOP_AUDIT,
	SHOP_PROBES
};

extern atomic_long_t shop_reached[SHOP_PROBES];

static inline void shop_count(enum shop_probe probe)
{
	atomic_long_inc(&shop_reached[probe]);
}

void shop_order(unsigned long id);

SDT_PROBE_DECLARE(shop, , , open);
SDT_PROBE_DECLARE(shop, , , close);
SDT_PROBE_DECLARE(shop, , , order__start);
SDT_PROBE_DECLARE(shop, , , price);
SDT_PROBE_DECLARE(shop, , , refuse);
SDT_PROBE_DECLARE(shop, , , short__of__stock);
SDT_PROBE_DECLARE(shop, , , order__done);
SDT_PROBE_DECLARE(shop, , , audit);

#endif
