// SPDX-License-Identifier: BSD-2-Clause
/* The probes of the shop. Which functions they are in, the records tell. */
#include "shop.h"

SDT_PROVIDER_DEFINE(shop);
SDT_PROBE_DEFINE1(shop, , , open, "const char *");
SDT_PROBE_DEFINE0(shop, , , close);
SDT_PROBE_DEFINE2(shop, , , order__start, "unsigned long", "int");
SDT_PROBE_DEFINE1(shop, , , price, "long");
SDT_PROBE_DEFINE2(shop, , , refuse, "unsigned long", "int");
SDT_PROBE_DEFINE1(shop, , , short__of__stock, "unsigned long");
SDT_PROBE_DEFINE3(shop, , , order__done, "unsigned long", "int", "u64");
SDT_PROBE_DEFINE7(shop, , , audit, "int", "int", "int", "int", "int", "int",
		  "unsigned long");
