// SPDX-License-Identifier: BSD-2-Clause
/*
 * /sys/kernel/debug/sdt:
 *
 *	probes	the sites of all probes, and how often each was traced
 *	enable	write a number or a name to trace it; read the rules
 *	disable	write a number or a name not to trace it
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "provider.h"

#define SDT_SPEC_MAX 1024

static struct dentry *sdt_directory;

static void *sdt_seq_start(struct seq_file *file, loff_t *pos)
{
	mutex_lock(&sdt_lock);
	return seq_list_start_head(&sdt_sites, *pos);
}

static void *sdt_seq_next(struct seq_file *file, void *at, loff_t *pos)
{
	return seq_list_next(at, &sdt_sites, pos);
}

static void sdt_seq_stop(struct seq_file *file, void *at)
{
	mutex_unlock(&sdt_lock);
}

static int sdt_seq_show(struct seq_file *file, void *at)
{
	const struct sdt_site *site = list_entry(at, struct sdt_site, link);

	if (at == &sdt_sites) {
		seq_puts(file, "   ID KIND STATE       HITS MISSED ADDRESS          PROBE SITE\n");
		return 0;
	}
	seq_printf(file, "%5u %-4s %-5s %10ld %6lu %016lx %s:%s:%s:%s %pS\n", site->id,
		   site->test ? "test" : "call", site->armed ? "on" : "off", atomic_long_read(&site->hits),
		   site->kp.nmissed, site->address, site->part[SDT_PROVIDER], site->part[SDT_MODULE],
		   site->part[SDT_FUNCTION], site->part[SDT_NAME], (void *)site->address);
	return 0;
}

static const struct seq_operations sdt_probes_sops = {
	.start = sdt_seq_start,
	.next = sdt_seq_next,
	.stop = sdt_seq_stop,
	.show = sdt_seq_show,
};
DEFINE_SEQ_ATTRIBUTE(sdt_probes);

static int sdt_rules_show(struct seq_file *file, void *unused)
{
	mutex_lock(&sdt_lock);
	sdt_print_rules(file);
	mutex_unlock(&sdt_lock);
	return 0;
}

static int sdt_rules_open(struct inode *inode, struct file *file)
{
	return single_open(file, sdt_rules_show, NULL);
}

static ssize_t sdt_write(const char __user *from, size_t count, bool trace)
{
	char *text;
	int error;

	if (count > SDT_SPEC_MAX)
		return -EINVAL;
	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&sdt_lock);
	error = sdt_add_rule(strim(text), trace);
	if (!error)
		error = sdt_apply();
	mutex_unlock(&sdt_lock);
	kfree(text);
	return error ? error : count;
}

static ssize_t sdt_enable_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	return sdt_write(from, count, true);
}

static ssize_t sdt_disable_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	return sdt_write(from, count, false);
}

static const struct file_operations sdt_enable_fops = {
	.owner = THIS_MODULE,
	.open = sdt_rules_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
	.write = sdt_enable_write,
};

static const struct file_operations sdt_disable_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.write = sdt_disable_write,
};

void sdt_make_files(void)
{
	sdt_directory = debugfs_create_dir("sdt", NULL);
	debugfs_create_file("probes", 0400, sdt_directory, NULL, &sdt_probes_fops);
	debugfs_create_file("enable", 0600, sdt_directory, NULL, &sdt_enable_fops);
	debugfs_create_file("disable", 0200, sdt_directory, NULL, &sdt_disable_fops);
}

void sdt_remove_files(void)
{
	debugfs_remove_recursive(sdt_directory);
}
