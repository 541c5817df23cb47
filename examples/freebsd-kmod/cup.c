/* SPDX-License-Identifier: BSD-2-Clause */
#include "coffee.h"

static __attribute__((noinline)) void spill(int size)
{
	SDT_PROBE1(coffee, , , spill, size);
}

int cup_fill(int size)
{
	if (size > 250)
		spill(size);
	SDT_PROBE1(coffee, , , pour, size);
	return size;
}
