// SPDX-License-Identifier: BSD-2-Clause
/*
 * The records of a module. The only thing that tells one module where another
 * has its sections, before that one's init function runs, are symbols: its
 * struct mod_kallsyms. (The section attributes in sysfs are made later, and say
 * no sizes.) So the linker script sdt.lds puts symbols around the sections. They
 * are kept after init if the kernel has CONFIG_KALLSYMS_ALL; on one without it,
 * only modules that are loaded after the provider are found.
 *
 * The contents are trusted as the module's code is. What is checked is what may
 * well happen: that a probe is not a struct sdt_probe of sdt.h.
 */
#include <linux/kallsyms.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <sdt.h>

#include "provider.h"

struct sdt_record {
	const struct sdt_probe *probe;
	unsigned long site;
};

enum sdt_set { SDT_INSTANCES, SDT_TESTS, SDT_ARGTYPES, SDT_SETS };

/* Where each set begins and ends; both are zero if a module has none. */
struct sdt_bounds {
	unsigned long start[SDT_SETS];
	unsigned long stop[SDT_SETS];
};

static void sdt_take_bound(struct sdt_bounds *bounds, const char *symbol, unsigned long value)
{
	static const char *const names[SDT_SETS] = {
		[SDT_INSTANCES] = "sdt_instances_set",
		[SDT_TESTS] = "sdt_isenabled_set",
		[SDT_ARGTYPES] = "set_sdt_argtypes_set",
	};
	unsigned long *bound;
	size_t skip;
	int i;

	skip = str_has_prefix(symbol, "__start_");
	bound = bounds->start;
	if (!skip) {
		skip = str_has_prefix(symbol, "__stop_");
		bound = bounds->stop;
	}
	for (i = 0; skip && i < SDT_SETS; i++)
		if (!strcmp(symbol + skip, names[i]))
			bound[i] = value;
}

static void sdt_find_bounds(struct module *mod, struct sdt_bounds *bounds)
{
	const struct mod_kallsyms *table;
	const Elf_Sym *sym;

	memset(bounds, 0, sizeof(*bounds));
	rcu_read_lock_sched();
	table = rcu_dereference_sched(mod->kallsyms);
	for (sym = table->symtab; sym < table->symtab + table->num_symtab; sym++)
		if (sym->st_shndx != SHN_UNDEF)
			sdt_take_bound(bounds, table->strtab + sym->st_name,
				       kallsyms_symbol_value(sym));
	rcu_read_unlock_sched();
}

/* In names, `__' stands for `-'. */
static char *sdt_copy_name(const char *name)
{
	char *copy = kstrdup(name, GFP_KERNEL);
	char *dash = copy;

	while (dash && (dash = strstr(dash, "__"))) {
		*dash++ = '-';
		memmove(dash, dash + 1, strlen(dash));
	}
	return copy;
}

/* The function of a site, without what gcc appends to one that it has split. */
static char *sdt_copy_function(unsigned long address)
{
	char symbol[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(symbol, address);
	symbol[strcspn(symbol, ". ")] = '\0';
	return kstrdup(symbol, GFP_KERNEL);
}

static bool sdt_name_site(struct sdt_site *site, const struct sdt_probe *probe)
{
	int i;

	site->part[SDT_PROVIDER] = sdt_copy_name(probe->prov->name);
	site->part[SDT_MODULE] = kstrdup(*probe->mod ? probe->mod : site->mod->name, GFP_KERNEL);
	site->part[SDT_FUNCTION] = *probe->func ? kstrdup(probe->func, GFP_KERNEL) :
						  sdt_copy_function(site->address);
	site->part[SDT_NAME] = sdt_copy_name(probe->name);
	for (i = 0; i < SDT_PARTS; i++)
		if (!site->part[i])
			return false;
	return true;
}

static char sdt_form_of(const char *type)
{
	if (strchr(type, '*'))
		return 'x';
	if (strstr(type, "unsigned") || *type == 'u' || strstarts(type, "size_t"))
		return 'u';
	return 'd';
}

static void sdt_find_args(struct sdt_site *site, const struct sdt_bounds *bounds)
{
	struct sdt_argtype **arg = (struct sdt_argtype **)bounds->start[SDT_ARGTYPES];

	for (; arg < (struct sdt_argtype **)bounds->stop[SDT_ARGTYPES]; arg++) {
		int n = (*arg)->ndx;

		if ((*arg)->probe != site->probe || n < 0 || n >= SDT_ARGS)
			continue;
		site->form[n] = sdt_form_of((*arg)->type);
		site->args = max(site->args, n + 1);
	}
}

/* Is there a return at a site? It may be a jump to the thunk that returns. */
static bool sdt_is_return(const void *code)
{
#ifdef CONFIG_X86
	const u8 first = *(const u8 *)code;

	return first == 0xc3 || first == 0xe9 || first == 0xeb;
#else
	return false;	/* a call pushes nothing there, so it does not matter */
#endif
}

static void sdt_free_site(struct sdt_site *site)
{
	int i;

	for (i = 0; i < SDT_PARTS; i++)
		kfree(site->part[i]);
	kfree(site);
}

static void sdt_add_site(struct module *mod, const struct sdt_bounds *bounds,
			 const struct sdt_record *record, bool test)
{
	static unsigned int last_id;
	struct sdt_site *site;

	if (!record->probe || record->probe->version != sizeof(struct sdt_probe)) {
		pr_warn("sdt: %s: the probe at %pS is unknown\n", mod->name, (void *)record->site);
		return;
	}
	site = kzalloc(sizeof(*site), GFP_KERNEL);
	if (!site)
		return;
	site->mod = mod;
	site->probe = record->probe;
	site->address = record->site;
	site->test = test;
	if (!sdt_name_site(site, record->probe)) {
		sdt_free_site(site);
		return;
	}
	sdt_find_args(site, bounds);
	site->returns = sdt_is_return((void *)site->address);
	site->id = ++last_id;
	list_add_tail(&site->link, &sdt_sites);
}

static bool sdt_knows(const struct module *mod)
{
	struct sdt_site *site;

	list_for_each_entry(site, &sdt_sites, link)
		if (site->mod == mod)
			return true;
	return false;
}

/* Code of init sections counts as long as the init function has not returned. */
void sdt_add_module(struct module *mod)
{
	const bool coming = mod->state == MODULE_STATE_COMING;
	const struct sdt_record *record, *stop;
	struct sdt_bounds bounds;
	int set;

	if (sdt_knows(mod))
		return;
	sdt_find_bounds(mod, &bounds);
	for (set = SDT_INSTANCES; set <= SDT_TESTS; set++) {
		record = (const struct sdt_record *)bounds.start[set];
		stop = (const struct sdt_record *)bounds.stop[set];
		for (; record < stop; record++)
			if (coming || within_module_core(record->site, mod))
				sdt_add_site(mod, &bounds, record, set == SDT_TESTS);
	}
}

void sdt_free_gone(void)
{
	struct sdt_site *site, *next;

	list_for_each_entry_safe(site, next, &sdt_sites, link) {
		if (!site->gone)
			continue;
		list_del(&site->link);
		sdt_free_site(site);
	}
}
