/* SPDX-License-Identifier: BSD-2-Clause */
#include "coffee.h"

SDT_PROVIDER_DEFINE(coffee);
SDT_PROBE_DEFINE2(coffee, , , make, "int", "int");
SDT_PROBE_DEFINE1(coffee, , , pour, "int");
SDT_PROBE_DEFINE1(coffee, , , spill, "int");

int coffee_make(int size, int cups)
{
	int poured = 0;

	SDT_PROBE2(coffee, , , make, size, cups);
	while (cups-- > 0)
		poured += cup_fill(size);
	if (SDT_PROBE_ENABLED(coffee, , , pour))
		SDT_PROBE1(coffee, , , pour, poured);
	return poured;
}
