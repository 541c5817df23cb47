// SPDX-License-Identifier: BSD-2-Clause
/*
 * A module of several files with probes. What it does is up to its parameters
 * in /sys/module/shop/parameters:
 *
 *	orders	write N to take orders 1 to N
 *	clerks	write N to have N threads take orders without end
 *	reached	how often each probe was reached
 */
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "shop.h"

#define SHOP_CLERKS 4

atomic_long_t shop_reached[SHOP_PROBES];

static struct task_struct *shop_clerk[SHOP_CLERKS];
static bool shop_closed;
static DEFINE_MUTEX(shop_lock);

static int clerk(void *unused)
{
	unsigned long id = 0;

	while (!kthread_should_stop()) {
		shop_order(++id);
		cond_resched();
	}
	return 0;
}

static int hire(unsigned int n)
{
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < SHOP_CLERKS; i++) {
		if (i < n && !shop_clerk[i]) {
			task = kthread_run(clerk, NULL, "clerk/%u", i);
			if (IS_ERR(task))
				return PTR_ERR(task);
			shop_clerk[i] = task;
		} else if (i >= n && shop_clerk[i]) {
			kthread_stop(shop_clerk[i]);
			shop_clerk[i] = NULL;
		}
	}
	return 0;
}

static int clerks_set(const char *text, const struct kernel_param *kp)
{
	unsigned int n;
	int error = kstrtouint(text, 0, &n);

	if (error)
		return error;
	mutex_lock(&shop_lock);
	error = shop_closed ? -ENODEV : hire(n);
	mutex_unlock(&shop_lock);
	return error;
}

static const struct kernel_param_ops clerks_ops = { .set = clerks_set };
module_param_cb(clerks, &clerks_ops, NULL, 0200);

static int orders_set(const char *text, const struct kernel_param *kp)
{
	unsigned long i, n;
	int error = kstrtoul(text, 0, &n);

	if (error)
		return error;
	for (i = 1; i <= n; i++) {
		shop_order(i);
		cond_resched();
	}
	return 0;
}

static const struct kernel_param_ops orders_ops = { .set = orders_set };
module_param_cb(orders, &orders_ops, NULL, 0200);

static int reached_get(char *text, const struct kernel_param *kp)
{
	static const char *const names[SHOP_PROBES] = {
		[SHOP_OPEN] = "open",
		[SHOP_START] = "order-start",
		[SHOP_PRICE] = "price",
		[SHOP_REFUSE] = "refuse",
		[SHOP_SHORT] = "short-of-stock",
		[SHOP_DONE] = "order-done",
		[SHOP_AUDIT] = "audit",
	};
	int i, len = 0;

	for (i = 0; i < SHOP_PROBES; i++)
		len += scnprintf(text + len, PAGE_SIZE - len, "%s %ld\n", names[i],
				 atomic_long_read(&shop_reached[i]));
	return len;
}

static const struct kernel_param_ops reached_ops = { .get = reached_get };
module_param_cb(reached, &reached_ops, NULL, 0400);

static int __init shop_init(void)
{
	shop_count(SHOP_OPEN);
	SDT_PROBE1(shop, , , open, KBUILD_MODNAME);
	return 0;
}

static void __exit shop_exit(void)
{
	SDT_PROBE0(shop, , , close);
	mutex_lock(&shop_lock);
	shop_closed = true;	/* parameters can be written for a while yet */
	hire(0);
	mutex_unlock(&shop_lock);
}

module_init(shop_init);
module_exit(shop_exit);
MODULE_DESCRIPTION("A module of several files with SDT probes");
MODULE_LICENSE("Dual BSD/GPL");
