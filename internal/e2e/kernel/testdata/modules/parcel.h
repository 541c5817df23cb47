/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PARCEL_H
#define PARCEL_H

#include <sdt.h>

/* A type of the module's own, for its BTF. */
struct parcel {
	unsigned long weight;
	int zone;
};

long parcel_price(const struct parcel *p);
int parcel_check(const struct parcel *p);

SDT_PROBE_DECLARE(post, , , price);
SDT_PROBE_DECLARE(post, , , refuse);

#endif
