// SPDX-License-Identifier: BSD-2-Clause
/*
 * A module of a single file with probes. Write a number to
 * /sys/module/tick/parameters/ticks, and read there how often it ticked.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include <sdt.h>

SDT_PROVIDER_DEFINE(tick);
SDT_PROBE_DEFINE1(tick, , , start, "int");
SDT_PROBE_DEFINE2(tick, clock, , tick, "unsigned long", "void *");

static unsigned long ticked;

static noinline void tick(unsigned long n)
{
	ticked++;
	SDT_PROBE2(tick, clock, , tick, n, &ticked);
}

static int ticks_set(const char *text, const struct kernel_param *kp)
{
	unsigned long i, n;
	int error = kstrtoul(text, 0, &n);

	if (error)
		return error;
	for (i = 1; i <= n; i++)
		tick(i);
	return 0;
}

static const struct kernel_param_ops ticks_ops = {
	.set = ticks_set,
	.get = param_get_ulong,
};
module_param_cb(ticks, &ticks_ops, &ticked, 0600);

static int __init tick_init(void)
{
	SDT_PROBE1(tick, , , start, -1);
	return 0;
}

static void __exit tick_exit(void)
{
}

module_init(tick_init);
module_exit(tick_exit);
MODULE_DESCRIPTION("A module of a single file with SDT probes");
MODULE_LICENSE("Dual BSD/GPL");
