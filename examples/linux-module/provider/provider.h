/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sdt provider: it finds the records of modules that sdtconvert has
 * converted, and traces their probes with kprobes.
 *
 * main.c	modules that come and go
 * records.c	what records a module has, and what they say
 * rules.c	which probes are to be traced
 * site.c	tracing a site, or not
 * files.c	/sys/kernel/debug/sdt
 */
#ifndef SDT_PROVIDER_H
#define SDT_PROVIDER_H

#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

enum sdt_part { SDT_PROVIDER, SDT_MODULE, SDT_FUNCTION, SDT_NAME, SDT_PARTS };

#define SDT_ARGS 8

/* The place of a tracepoint, or of an is-enabled test. */
struct sdt_site {
	struct list_head link;		/* in sdt_sites */
	struct kprobe kp;		/* registered while armed */
	struct module *mod;		/* which the site is in */
	const void *probe;		/* to compare: it may be gone */
	unsigned long address;
	unsigned int id;		/* never used again */
	bool test;			/* an is-enabled test */
	bool returns;			/* a tail call: the site is a return */
	bool gone;			/* its code is about to go */
	bool wanted;
	bool armed;
	int args;			/* how many are known of */
	char form[SDT_ARGS];		/* of each: 'd', 'u' or 'x' */
	atomic_long_t hits;
	char *part[SDT_PARTS];
};

/* Protects the list, the rules, and of sites what their handlers do not use. */
extern struct mutex sdt_lock;
extern struct list_head sdt_sites;

/* records.c */
void sdt_add_module(struct module *mod);
void sdt_free_gone(void);

/* rules.c */
int sdt_add_rule(char *spec, bool trace);
bool sdt_ruled(const struct sdt_site *site);
void sdt_print_rules(struct seq_file *file);
void sdt_free_rules(void);

/* site.c */
int sdt_start_trace(void);
void sdt_stop_trace(void);
int sdt_apply(void);

/* files.c */
void sdt_make_files(void);
void sdt_remove_files(void);

#endif
