/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Sites: what they look like, how they are armed, and the handler of
 * breakpoints.
 *
 * A site is armed by a breakpoint over its first byte or instruction, and by
 * nothing else, so that one write of a byte (amd64) or an aligned word
 * (arm64) does it, while other processors execute the code. What such a
 * processor may see:
 *
 *   - Shortly after a site was armed it may still execute the old
 *     instruction. That is a hit less, as if it had come a moment earlier.
 *   - Shortly after a site was disarmed it may still take the breakpoint. The
 *     site counts as armed until sdts_settle() returns: that interrupts every
 *     processor, and the handler runs with interrupts disabled, so no one is
 *     in it any more, or will enter it for a byte that is gone. Only then the
 *     caller may free what the handler reads.
 *
 * Before a site is armed, all that the handler reads of it is in place: it is
 * hashed when its file is loaded.
 *
 * A breakpoint within the handler would call the handler again, without end.
 * fbt puts none into functions named dtrace_*, so that is what each function
 * is called that may run in the handler, or while a probe fires. fbt leaves
 * out modules that depend on dtrace.ko too, but DTrace may be in the kernel.
 */
#include <sys/param.h>
#include <sys/systm.h>
#include <sys/conf.h>
#include <sys/kernel.h>
#include <sys/linker.h>
#include <sys/malloc.h>
#include <sys/pcpu.h>
#include <sys/proc.h>
#include <sys/queue.h>
#include <sys/sdt.h>
#include <sys/smp.h>

#include <sys/dtrace.h>
#include <sys/dtrace_bsd.h>

#include <machine/cpufunc.h>
#include <machine/frame.h>
#include <machine/md_var.h>

#include <sdt_forms.h>

#include "sdts.h"

#define	HASHSIZE	1024
#define	HASH(a)							\
	(((uintptr_t)(a) ^ ((uintptr_t)(a) >> 10)) & (HASHSIZE - 1))

/* Of DTrace's module, and in no header. */
int	dtrace_invop(uintptr_t, struct trapframe *, uintptr_t);

static struct sdts_site *volatile sdts_hashtab[HASHSIZE];
static struct sdts_hit {
	struct trapframe *tf;
	bool	tail;		/* the frame is one at a tail call */
	int	first;		/* argument that is the probe's first */
	int	nargs;		/* of the probe; any others are 0 */
} sdts_hits[MAXCPU];		/* while a probe fires */
static bool sdts_asking[MAXCPU]; /* other providers, for a breakpoint */

int	sdts_foreign;		/* sites that were not as expected */

#if defined(__amd64__)
#define	BREAKPOINT	0xcc
typedef uint8_t sdts_code;

static void
sdts_write(uint8_t *addr, sdts_code value)
{
	register_t intr;
	bool wp;

	intr = intr_disable();
	wp = disable_wp();
	*(volatile sdts_code *)addr = value;
	restore_wp(wp);
	intr_restore(intr);
}

static uint64_t
dtrace_sdts_register(const struct trapframe *tf, int n)
{

	switch (n) {
	case 0: return (tf->tf_rdi);
	case 1: return (tf->tf_rsi);
	case 2: return (tf->tf_rdx);
	case 3: return (tf->tf_rcx);
	case 4: return (tf->tf_r8);
	default: return (tf->tf_r9);
	}
}

#define	SP(tf)			((tf)->tf_rsp)
#define	SET_RESULT(tf)		((tf)->tf_rax = 1)
#define	RETURN_ADDRESS(tf)	(*(uintptr_t *)(tf)->tf_rsp)

/* DTRACE_INVOP_NOP goes on at tf_rip, now behind the breakpoint's one byte. */
static int
dtrace_sdts_goto(struct trapframe *tf, uintptr_t pc)
{

	tf->tf_rip = pc;
	return (DTRACE_INVOP_NOP);
}

static int
dtrace_sdts_return(struct trapframe *tf __unused)
{

	return (DTRACE_INVOP_RET);
}

#elif defined(__aarch64__)
/* That of fbt, which the kernel hands to DTrace. */
#define	BREAKPOINT	(0xd4200000 | 0x40d << 5)
#define	B_ONE		0x14000001	/* b .+4 */
#define	RET		0xd65f03c0
typedef uint32_t sdts_code;

static void
sdts_write(uint8_t *addr, sdts_code value)
{
#if __FreeBSD_version >= 1500000
	void *to;
#elif __FreeBSD_version >= 1400000
	vm_offset_t to;
#endif

#if __FreeBSD_version >= 1500000
	if (!arm64_get_writable_addr(addr, &to))
		panic("sdts: %p is not to be written", addr);
	*(volatile sdts_code *)to = value;
	cpu_icache_sync_range(addr, sizeof(value));
#else
#if __FreeBSD_version >= 1400000
	if (!arm64_get_writable_addr((vm_offset_t)addr, &to))
		panic("sdts: %p is not to be written", addr);
	*(volatile sdts_code *)to = value;
#else
	*(volatile sdts_code *)addr = value;
#endif
	cpu_icache_sync_range((vm_offset_t)addr, sizeof(value));
#endif
}

static uint64_t
dtrace_sdts_register(const struct trapframe *tf, int n)
{

	return (tf->tf_x[n]);
}

#define	SP(tf)			((tf)->tf_sp)
#define	SET_RESULT(tf)		((tf)->tf_x[0] = 1)
#define	RETURN_ADDRESS(tf)	((tf)->tf_lr)

/* The kernel emulates a branch by words from tf_elr, or a return. */
static int
dtrace_sdts_goto(struct trapframe *tf, uintptr_t pc)
{

	tf->tf_elr = pc - 4;
	return (B_ONE);
}

static int
dtrace_sdts_return(struct trapframe *tf __unused)
{

	return (RET);
}
#else
#error "sdts: this machine is not supported"
#endif

static sdts_code
dtrace_sdts_read(const struct sdts_site *s)
{

	return (*(const volatile sdts_code *)s->addr);
}

/* Finds out what form a site has. Returns false if the code is none. */
bool
sdts_classify(struct sdts_site *s, bool test)
{

	s->form = sdt_form(s->addr, test);
	if (s->form == NULL)
		return (false);
	sdts_take(s);
	return (true);
}

/* Takes the code of a site as that while it is disarmed. */
void
sdts_take(struct sdts_site *s)
{

	s->saved = s->expected = dtrace_sdts_read(s);
}

/* Returns whether a site's code is what it was left as. */
bool
sdts_as_expected(const struct sdts_site *s)
{

	return (s->dead || dtrace_sdts_read(s) == (sdts_code)s->expected);
}

void
sdts_hash(struct sdts_site *s)
{

	s->hnext = sdts_hashtab[HASH(s->addr)];
	atomic_store_rel_ptr((volatile uintptr_t *)&sdts_hashtab[HASH(s->addr)],
	    (uintptr_t)s);
}

/* The caller calls sdts_settle() before it frees the site. */
void
sdts_unhash(struct sdts_site *s)
{
	struct sdts_site *volatile *h;

	for (h = &sdts_hashtab[HASH(s->addr)]; *h != NULL; h = &(*h)->hnext)
		if (*h == s) {
			*h = s->hnext;
			return;
		}
}

/*
 * Puts a breakpoint over a site. If there is one already, fbt has taken a
 * tail call's return for the function's, and both providers fire. Other code
 * is not ours, and is left alone. Tracepoints have a jump instead.
 */
void
sdts_arm(struct sdts_site *s)
{
	sdts_code code;

	if (s->dead || s->armed || s->target != 0)
		return;
	code = dtrace_sdts_read(s);
	s->shared = code == (sdts_code)BREAKPOINT && s->form->tail;
	if (code != (sdts_code)s->saved && !s->shared) {
		sdts_foreign++;
		return;
	}
	s->armed = true;
	s->expected = BREAKPOINT;
	atomic_thread_fence_rel();
	if (!s->shared)
		sdts_write(s->addr, BREAKPOINT);
}

/* Puts the code back. The site counts as armed until after sdts_settle(). */
void
sdts_disarm(struct sdts_site *s)
{

	if (!s->armed || s->dead || s->target != 0)
		return;
	s->expected = s->saved;
	if (s->shared)
		return;
	if (dtrace_sdts_read(s) == (sdts_code)BREAKPOINT)
		sdts_write(s->addr, s->saved);
	else
		sdts_foreign++;
}

/* Arms a site that several may want armed, for the first, or disarms it for the last. */
void
sdts_want(struct sdts_site *s, bool armed)
{

	if (armed && s->refs++ == 0)
		sdts_arm(s);
	else if (!armed && --s->refs == 0)
		sdts_disarm(s);
}

static void
sdts_nothing(void *arg __unused)
{
}

/*
 * Returns when no processor is in the handler, or will be for code that is
 * gone by now.
 */
void
sdts_settle(void)
{

	smp_rendezvous(smp_no_rendezvous_barrier, sdts_nothing,
	    smp_no_rendezvous_barrier, NULL);
}

static struct sdts_site *
dtrace_sdts_find(uintptr_t addr)
{
	struct sdts_site *s;

	for (s = sdts_hashtab[HASH(addr)]; s != NULL; s = s->hnext)
		if ((uintptr_t)s->addr == addr)
			return (s);
	return (NULL);
}

/* Returns one of a probe's first five arguments, which are in registers. */
static uint64_t
dtrace_sdts_argument(const struct sdts_hit *hit, int n)
{

	if (n >= hit->nargs)
		return (0);
	return (dtrace_sdts_register(hit->tf, hit->first + n));
}

/* Is a frame of its own, so that SDTS_AFRAMES is right. */
static void __noinline
dtrace_sdts_fire(struct sdts_site *s, struct sdts_hit hit)
{
	solaris_cpu_t *cpu = &solaris_cpu[curcpu];
	struct sdts_hit outer = sdts_hits[curcpu];

	s->hits++;
	sdts_hits[curcpu] = hit;
	cpu->cpu_dtrace_caller = hit.tail ? RETURN_ADDRESS(hit.tf) :
	    (uintptr_t)s->addr;
	dtrace_probe(s->owner->id, dtrace_sdts_argument(&hit, 0),
	    dtrace_sdts_argument(&hit, 1), dtrace_sdts_argument(&hit, 2),
	    dtrace_sdts_argument(&hit, 3), dtrace_sdts_argument(&hit, 4));
	cpu->cpu_dtrace_caller = 0;
	sdts_hits[curcpu] = outer;
}

/* Fires what another provider has at addr. Returns 0 if there is nothing. */
static int
dtrace_sdts_others(uintptr_t addr, struct trapframe *tf, uintptr_t rval)
{
	int how;

	sdts_asking[curcpu] = true;
	how = dtrace_invop(addr, tf, rval);
	sdts_asking[curcpu] = false;
	return (how);
}

/* Handles a jump to sdt_probe(), whose first argument is the probe's number. */
static __always_inline int
dtrace_sdts_jump(const struct sdts_site *jump, struct trapframe *tf,
    uintptr_t rval)
{
	struct sdts_site *s;

	s = dtrace_sdts_point_of_jump(jump,
	    (uint32_t)dtrace_sdts_register(tf, 0));
	if (s != NULL)
		dtrace_sdts_fire(s, (struct sdts_hit){ tf, true, 1, s->nargs });
	/* fbt takes it for a return on arm64, and would go on to sdt_probe(). */
	(void)dtrace_sdts_others((uintptr_t)jump->addr, tf, rval);
	return (dtrace_sdts_return(tf));
}

/* Handles a breakpoint at addr. Returns 0 if it is not ours. */
int
dtrace_sdts_invop(uintptr_t addr, struct trapframe *tf, uintptr_t rval)
{
	struct sdts_site *s = dtrace_sdts_find(addr);
	int how;

	if (s == NULL || sdts_asking[curcpu])
		return (0);
	if (!s->armed) {
		/* Another provider's, or one that is gone by now: try again. */
		if (dtrace_sdts_read(s) == (sdts_code)BREAKPOINT)
			return (0);
		return (dtrace_sdts_goto(tf, addr));
	}
	if (s->probe == NULL)
		return (dtrace_sdts_jump(s, tf, rval));
	if (s->form->test) {
		s->hits++;
		SET_RESULT(tf);
	} else
		dtrace_sdts_fire(s, (struct sdts_hit){ tf, s->form->tail, 0,
		    s->nargs });
	if (s->form->step != 0)
		return (dtrace_sdts_goto(tf, addr + s->form->step));
	/* fbt may have armed this return as well, before us or after. */
	how = dtrace_sdts_others(addr, tf, rval);
	return (how != 0 ? how : dtrace_sdts_return(tf));
}

/* Arguments behind the fifth: in registers, then on the stack of the call. */
uint64_t
dtrace_sdts_getargval(void *arg __unused, dtrace_id_t id __unused,
    void *parg __unused, int n, int aframes __unused)
{
	const struct sdts_hit *hit = &sdts_hits[curcpu];

	if (hit->tf == NULL)
		return (dtrace_sdts_point_argument(n));
	if (n >= hit->nargs)
		return (0);
	n += hit->first;
	if (n < SDT_REGISTERS)
		return (dtrace_sdts_register(hit->tf, n));
	n -= SDT_REGISTERS;
#if defined(__amd64__)
	/* The call has pushed no return address, but that of the function has. */
	if (hit->tail)
		n++;
#endif
	return (((uint64_t *)SP(hit->tf))[n]);
}
