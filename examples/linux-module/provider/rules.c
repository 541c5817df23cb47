// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which probes are to be traced. What was asked for stays, so that it holds for
 * modules that come later: a list of rules, of which the last one that matches
 * a probe decides. A rule is a number of the list of probes, or a name of four
 * parts, each a pattern; an empty part matches anything.
 */
#include <linux/glob.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "provider.h"

struct sdt_rule {
	struct list_head link;
	bool trace;
	unsigned int id;		/* zero: a name */
	char *text;			/* as it was written */
	char *parts;			/* a copy, which `part' points into */
	char *part[SDT_PARTS];
};

static LIST_HEAD(sdt_rules);

static void sdt_free_rule(struct sdt_rule *rule)
{
	kfree(rule->text);
	kfree(rule->parts);
	kfree(rule);
}

void sdt_free_rules(void)
{
	struct sdt_rule *rule, *next;

	list_for_each_entry_safe(rule, next, &sdt_rules, link)
		sdt_free_rule(rule);
	INIT_LIST_HEAD(&sdt_rules);
}

static int sdt_split(struct sdt_rule *rule)
{
	char *rest = rule->parts;
	int i;

	if (!kstrtouint(rule->text, 10, &rule->id))
		return rule->id ? 0 : -EINVAL;
	for (i = 0; i < SDT_PARTS; i++)
		rule->part[i] = strsep(&rest, ":");
	return rest || !rule->part[SDT_PARTS - 1] ? -EINVAL : 0;
}

static struct sdt_rule *sdt_new_rule(const char *spec, bool trace)
{
	struct sdt_rule *rule = kzalloc(sizeof(*rule), GFP_KERNEL);
	int error = -ENOMEM;

	if (!rule)
		return ERR_PTR(error);
	rule->trace = trace;
	rule->text = kstrdup(spec, GFP_KERNEL);
	rule->parts = kstrdup(spec, GFP_KERNEL);
	if (rule->text && rule->parts)
		error = sdt_split(rule);
	if (!error)
		return rule;
	sdt_free_rule(rule);
	return ERR_PTR(error);
}

static bool sdt_matches(const struct sdt_rule *rule, const struct sdt_site *site)
{
	int i;

	if (rule->id)
		return rule->id == site->id;
	for (i = 0; i < SDT_PARTS; i++)
		if (*rule->part[i] && !glob_match(rule->part[i], site->part[i]))
			return false;
	return true;
}

static bool sdt_matches_any(const struct sdt_rule *rule)
{
	struct sdt_site *site;

	list_for_each_entry(site, &sdt_sites, link)
		if (!site->test && sdt_matches(rule, site))
			return true;
	return false;
}

/* A name may be one of a module to come, a number may not. */
int sdt_add_rule(char *spec, bool trace)
{
	struct sdt_rule *rule = sdt_new_rule(spec, trace);
	struct sdt_rule *old, *next;

	if (IS_ERR(rule))
		return PTR_ERR(rule);
	if (rule->id && !sdt_matches_any(rule)) {
		sdt_free_rule(rule);
		return -ENOENT;
	}
	if (!strcmp(spec, ":::"))
		sdt_free_rules();
	list_for_each_entry_safe(old, next, &sdt_rules, link) {
		if (strcmp(old->text, rule->text))
			continue;
		list_del(&old->link);
		sdt_free_rule(old);
	}
	if (!trace && list_empty(&sdt_rules))
		sdt_free_rule(rule);
	else
		list_add_tail(&rule->link, &sdt_rules);
	return 0;
}

bool sdt_ruled(const struct sdt_site *site)
{
	struct sdt_rule *rule;

	list_for_each_entry_reverse(rule, &sdt_rules, link)
		if (sdt_matches(rule, site))
			return rule->trace;
	return false;
}

void sdt_print_rules(struct seq_file *file)
{
	struct sdt_rule *rule;

	list_for_each_entry(rule, &sdt_rules, link)
		seq_printf(file, "%c%s\n", rule->trace ? '+' : '-', rule->text);
}
