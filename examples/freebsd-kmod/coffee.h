/* SPDX-License-Identifier: BSD-2-Clause */
#include <sdt.h>

SDT_PROBE_DECLARE(coffee, , , pour);
SDT_PROBE_DECLARE(coffee, , , spill);

int cup_fill(int size);
int coffee_make(int size, int cups);
