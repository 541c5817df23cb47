// SPDX-License-Identifier: BSD-2-Clause
#include <linux/errno.h>

#include "parcel.h"

int parcel_check(const struct parcel *p)
{
	if (p->zone < 1) {
		SDT_PROBE1(post, , , refuse, p);
		return -EINVAL;
	}
	return 0;
}
