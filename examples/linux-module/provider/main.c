// SPDX-License-Identifier: BSD-2-Clause
/*
 * Modules that come and go. What a handler uses is freed only after its kprobe
 * is unregistered, which waits for handlers; and sites are forgotten before
 * their code is freed.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/slab.h>

#include "provider.h"

DEFINE_MUTEX(sdt_lock);
LIST_HEAD(sdt_sites);

/* Forget the sites of a module, of all modules, or those in the init sections of one. */
static void sdt_forget(const struct module *mod, bool init)
{
	struct sdt_site *site;

	list_for_each_entry(site, &sdt_sites, link)
		if ((!mod || site->mod == mod) && (!init || !within_module_core(site->address, mod)))
			site->gone = true;
	sdt_apply();
	sdt_free_gone();
}

static int sdt_notify(struct notifier_block *block, unsigned long state, void *data)
{
	struct module *mod = data;

	mutex_lock(&sdt_lock);
	switch (state) {
	case MODULE_STATE_COMING:
		sdt_add_module(mod);
		sdt_apply();
		break;
	case MODULE_STATE_LIVE:
		sdt_forget(mod, true);
		/* If this module was loaded after it was announced and before it was in sysfs. */
		sdt_add_module(mod);
		sdt_apply();
		break;
	case MODULE_STATE_GOING:
		sdt_forget(mod, false);
		break;
	}
	mutex_unlock(&sdt_lock);
	return NOTIFY_OK;
}

/* Before kprobes' own, which gives up the kprobes of code that goes. */
static struct notifier_block sdt_notifier = {
	.notifier_call = sdt_notify,
	.priority = 1,
};

static unsigned int sdt_count(struct kset *all)
{
	struct kobject *kobj;
	unsigned int n = 0;

	spin_lock(&all->list_lock);
	list_for_each_entry(kobj, &all->list, entry)
		n++;
	spin_unlock(&all->list_lock);
	return n;
}

static unsigned int sdt_hold(struct kset *all, struct module **mods, unsigned int max)
{
	struct kobject *kobj;
	unsigned int n = 0;

	spin_lock(&all->list_lock);
	list_for_each_entry(kobj, &all->list, entry) {
		struct module *mod = container_of(kobj, struct module_kobject, kobj)->mod;

		/* What is built in has none. */
		if (n < max && mod && mod != THIS_MODULE && try_module_get(mod))
			mods[n++] = mod;
	}
	spin_unlock(&all->list_lock);
	return n;
}

/* The kernel exports no list of modules, but sysfs has one: /sys/module. */
static int __init sdt_add_loaded(void)
{
	struct kset *all = THIS_MODULE->mkobj.kobj.kset;
	unsigned int i, n = sdt_count(all);
	struct module **mods;

	mods = kcalloc(n, sizeof(*mods), GFP_KERNEL);
	if (!mods)
		return -ENOMEM;
	n = sdt_hold(all, mods, n);
	for (i = 0; i < n; i++) {
		mutex_lock(&sdt_lock);
		sdt_add_module(mods[i]);
		mutex_unlock(&sdt_lock);
		module_put(mods[i]);
	}
	kfree(mods);
	return 0;
}

static void sdt_forget_all(void)
{
	mutex_lock(&sdt_lock);
	sdt_free_rules();
	sdt_forget(NULL, false);
	mutex_unlock(&sdt_lock);
}

static int __init sdt_init(void)
{
	int error = sdt_start_trace();

	if (error)
		return error;
	error = register_module_notifier(&sdt_notifier);
	if (error)
		goto stop;
	error = sdt_add_loaded();
	if (error)
		goto unregister;
	sdt_make_files();
	return 0;

unregister:
	unregister_module_notifier(&sdt_notifier);
	sdt_forget_all();
stop:
	sdt_stop_trace();
	return error;
}

static void __exit sdt_exit(void)
{
	sdt_remove_files();
	unregister_module_notifier(&sdt_notifier);
	sdt_forget_all();
	sdt_stop_trace();
}

module_init(sdt_init);
module_exit(sdt_exit);
MODULE_DESCRIPTION("Finds SDT probes of modules, and traces them");
MODULE_LICENSE("Dual BSD/GPL");
