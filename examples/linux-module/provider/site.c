// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tracing sites. A kprobe stops at a tracepoint and writes a line to the trace
 * instance `sdt'; at an is-enabled test it makes the result not zero, after the
 * instruction that set it to zero.
 */
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/trace.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "provider.h"

#define SDT_BATCH 32

static struct trace_array *sdt_trace;

/*
 * SDT_REGISTERS arguments of a call are in registers, the others from word SDT_STACK of the
 * stack on. Not every kernel has regs_get_kernel_argument and regs_set_return_value.
 */
#if defined(CONFIG_X86_64)
#define SDT_REGISTERS 6
#define SDT_STACK 0
#elif defined(CONFIG_X86)
#define SDT_REGISTERS 3			/* -mregparm=3 */
#define SDT_STACK 0
#elif defined(CONFIG_ARM)
#define SDT_REGISTERS 4
#define SDT_STACK 0
#define regs_get_kernel_argument(regs, n) ((regs)->uregs[n])
#define regs_set_return_value(regs, value) ((regs)->ARM_r0 = (value))
#elif defined(CONFIG_S390)
#define SDT_REGISTERS 5
#define SDT_STACK (160 / 8)		/* behind what a callee saves registers in */
#define regs_get_kernel_argument(regs, n) ((regs)->gprs[2 + (n)])
#elif defined(CONFIG_PPC)
#define SDT_REGISTERS 8
#define SDT_STACK (96 / 8)		/* the same, with ABI version 2 */
#define regs_get_kernel_argument(regs, n) ((regs)->gpr[3 + (n)])
#else					/* arm64, loongarch, riscv */
#define SDT_REGISTERS 8
#define SDT_STACK 0
#endif

/*
 * Arguments are where the disabled call would have had them. It has pushed no
 * return address; but if the site is a return, the caller's is on the stack.
 */
static unsigned long sdt_arg(const struct sdt_site *site, struct pt_regs *regs, int n)
{
	const unsigned long *stack = (const unsigned long *)kernel_stack_pointer(regs);
	unsigned long arg;

	if (n < SDT_REGISTERS)
		return regs_get_kernel_argument(regs, n);
	return get_kernel_nofault(arg, stack + SDT_STACK + n - SDT_REGISTERS + site->returns) ? 0 : arg;
}
NOKPROBE_SYMBOL(sdt_arg);

static int sdt_hit(struct kprobe *kp, struct pt_regs *regs)
{
	struct sdt_site *site = container_of(kp, struct sdt_site, kp);
	char args[SDT_ARGS * sizeof(" arg0=-9223372036854775808")] = "";
	int i, len = 0;

	for (i = 0; i < site->args; i++) {
		const char *format = site->form[i] == 'x' ? " arg%d=0x%lx" :
				     site->form[i] == 'u' ? " arg%d=%lu" : " arg%d=%ld";

		len += scnprintf(args + len, sizeof(args) - len, format, i, sdt_arg(site, regs, i));
	}
	atomic_long_inc(&site->hits);
	trace_array_printk(sdt_trace, site->address, "%s:%s:%s:%s%s\n", site->part[SDT_PROVIDER],
			   site->part[SDT_MODULE], site->part[SDT_FUNCTION], site->part[SDT_NAME], args);
	return 0;
}
NOKPROBE_SYMBOL(sdt_hit);

static void sdt_tested(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	atomic_long_inc(&container_of(kp, struct sdt_site, kp)->hits);
	regs_set_return_value(regs, 1);
}
NOKPROBE_SYMBOL(sdt_tested);

/*
 * With a handler for afterwards, a kprobe stays a breakpoint. Others become jumps,
 * which are taken back only some time after the kprobe is unregistered; when the
 * module is gone by then, Linux 6.1 keeps what it knew of that address, and warns
 * when the next module has a kprobe there.
 */
static void sdt_hit_done(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(sdt_hit_done);

static int sdt_arm(struct sdt_site *site)
{
	int error;

	/* Else it goes on in a helper that sets the result to zero. */
	if (site->test && site->returns)
		return -EOPNOTSUPP;
	memset(&site->kp, 0, sizeof(site->kp));
	site->kp.addr = (kprobe_opcode_t *)site->address;
	site->kp.pre_handler = site->test ? NULL : sdt_hit;
	site->kp.post_handler = site->test ? sdt_tested : sdt_hit_done;
	error = register_kprobe(&site->kp);
	/* The module goes, or its init function has returned; the notifier will say so. */
	if (error == -ENOENT)
		return 0;
	if (error)
		pr_warn("sdt: cannot trace %pS: %d\n", (void *)site->address, error);
	site->armed = !error;
	return error;
}

/* No handler of theirs runs any more when it returns. */
static void sdt_disarm_unwanted(void)
{
	struct kprobe *batch[SDT_BATCH];
	struct sdt_site *site;
	int n = 0;

	/* Tests are last in the list, and go first: what they guard is traced. */
	list_for_each_entry_reverse(site, &sdt_sites, link) {
		if (!site->armed || site->wanted)
			continue;
		site->armed = false;
		batch[n++] = &site->kp;
		if (n == SDT_BATCH) {
			unregister_kprobes(batch, n);
			n = 0;
		}
	}
	unregister_kprobes(batch, n);
}

/* A test asks whether anybody traces the probe, wherever that is. */
static bool sdt_probe_wanted(const void *probe)
{
	struct sdt_site *site;

	list_for_each_entry(site, &sdt_sites, link)
		if (!site->test && site->wanted && site->probe == probe)
			return true;
	return false;
}

/* Bring the kprobes in line with the rules, and with what is gone. */
int sdt_apply(void)
{
	struct sdt_site *site;
	int error, first = 0;

	list_for_each_entry(site, &sdt_sites, link)
		if (!site->test)
			site->wanted = !site->gone && sdt_ruled(site);
	list_for_each_entry(site, &sdt_sites, link)
		if (site->test)
			site->wanted = !site->gone && sdt_probe_wanted(site->probe);
	sdt_disarm_unwanted();
	list_for_each_entry(site, &sdt_sites, link) {
		if (site->armed || !site->wanted)
			continue;
		error = sdt_arm(site);
		if (!first)
			first = error;
	}
	return first;
}

/* Linux 6.8 asks for the events to show in the instance, and 6.6.87 has that, too. */
static struct trace_array *sdt_get_trace(const char *name)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 87) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0))
	return trace_array_get_by_name(name, NULL);
#else
	return trace_array_get_by_name(name);
#endif
}

int sdt_start_trace(void)
{
	int error;

	sdt_trace = sdt_get_trace("sdt");
	if (!sdt_trace)
		return -ENOMEM;
	error = trace_array_init_printk(sdt_trace);
	if (error)
		sdt_stop_trace();
	return error;
}

/* What was traced stays, in /sys/kernel/tracing/instances/sdt, until it is removed. */
void sdt_stop_trace(void)
{
	trace_array_put(sdt_trace);
}
