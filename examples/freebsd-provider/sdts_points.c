/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Tracepoints of the kernel's own kind, as FreeBSD 15 has them: a NOP, and a
 * record with its address and that of the code that calls sdt_probe(). The
 * kernel enables one by writing a jump to that code over the NOP, while all
 * processors wait. The code passes on probe->id, one number for all
 * tracepoints of a definition, so the function has to be found from the
 * address that sdt_probe() returns to.
 *
 * If the compiler has made that call the last of its function, it is a jump,
 * and sdt_probe() would return to the function's caller. sdts_points_scan()
 * finds such jumps when a file is loaded. They are armed with breakpoints
 * while a tracepoint of their function is enabled, and the handler fires the
 * probe and returns in place of sdt_probe().
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

#include <sdt_forms.h>

#include "sdts.h"

#ifdef _SDT_TRACEPOINT_SET

static const struct sdt_form sdts_point_form = { .step = 1 };
static const struct sdt_form sdts_jump_form = { .tail = 1 };
u_int	sdts_unplaced;		/* hits whose function is not known */
static uint32_t sdts_last_id;	/* under DTrace's lock */

/* What of the kernel passes hits on: sdt_probe() and sdt_probe6(). */
static struct {
	const char	*name;
	uintptr_t	 start, end;
} sdts_callers[] = { { "sdt_probe", 0, 0 }, { "sdt_probe6", 0, 0 } };

static void	dtrace_sdts_point_hit(uint32_t, uintptr_t, uintptr_t,
		    uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static uint64_t sdts_sixth[MAXCPU];	/* argument, while a probe fires */

static int
sdts_find_caller(linker_file_t lf __unused, int ndx __unused,
    linker_symval_t *v, void *arg __unused)
{
	u_int k;

	for (k = 0; k < nitems(sdts_callers); k++)
		if (strcmp(v->name, sdts_callers[k].name) == 0) {
			sdts_callers[k].start = (uintptr_t)v->value;
			sdts_callers[k].end = (uintptr_t)v->value + v->size;
		}
	return (0);
}

/* Returns whether an address is within one of the functions that pass on. */
static bool
dtrace_sdts_passes_on(uintptr_t pc)
{
	u_int k;

	for (k = 0; k < nitems(sdts_callers); k++)
		if (pc >= sdts_callers[k].start && pc < sdts_callers[k].end)
			return (true);
	return (false);
}

/* Returns whether an address is the start of one of those functions. */
static bool
dtrace_sdts_is_caller(uintptr_t addr)
{

	return (addr != 0 && (addr == sdts_callers[0].start ||
	    addr == sdts_callers[1].start));
}

#if defined(__amd64__)
#define	POINT_LEN	5
#define	STEP		1
#define	FRAMES_MISSING	2

static bool
sdts_is_disabled(const uint8_t *p)
{

	return (p[0] == 0x90 && memcmp(p, p + 1, POINT_LEN - 1) == 0);
}

/* Returns where a call or jump of an opcode goes, or 0 if it is another. */
static uintptr_t
dtrace_sdts_branch(uintptr_t pc, uint8_t opcode)
{
	int32_t disp;

	if (*(const uint8_t *)pc != opcode)
		return (0);
	memcpy(&disp, (const void *)(pc + 1), sizeof(disp));
	return (pc + POINT_LEN + disp);
}

/* Returns whether the bytes at an address are a jump to sdt_probe(). */
static bool
sdts_is_jump(linker_file_t lf __unused, uintptr_t pc)
{

	return (dtrace_sdts_is_caller(dtrace_sdts_branch(pc, 0xe9)));
}

/* Returns whether the instruction before an address called sdt_probe(). */
static bool
dtrace_sdts_is_after_call(uintptr_t ra)
{

	return (dtrace_sdts_is_caller(dtrace_sdts_branch(ra - 5, 0xe8)));
}

#elif defined(__aarch64__)
#define	POINT_LEN	4
#define	STEP		4
#define	FRAMES_MISSING	4

static bool
sdts_is_disabled(const uint8_t *p)
{

	return (*(const uint32_t *)p == 0xd503201f);
}

/*
 * Returns where an entry of a module's PLT goes, or the address itself if it
 * is none: adrp x16, page; ldr x17, [x16, #offset]; ...; br x17.
 */
static uintptr_t
dtrace_sdts_behind_plt(uintptr_t addr)
{
	const uint32_t *code = (const uint32_t *)addr;
	uintptr_t page;

	if ((code[0] & 0x9f00001f) != 0x90000010 ||
	    (code[1] & 0xffc003ff) != 0xf9400211 || code[3] != 0xd61f0220)
		return (addr);
	page = (addr & ~0xfffUL) + ((intptr_t)(int32_t)((code[0] & 0xffffe0) << 8)
	    >> 11 << 12) + ((code[0] >> 29 & 3) << 12);
	return (*(const uintptr_t *)(page + (code[1] >> 10 & 0xfff) * 8));
}

/* Returns where a branch of an opcode goes, or 0 if it is another. */
static uintptr_t
dtrace_sdts_branch(uintptr_t pc, uint32_t opcode)
{
	uint32_t code = *(const uint32_t *)pc;

	if ((code & 0xfc000000) != opcode)
		return (0);
	return (pc + (intptr_t)((int32_t)(code << 6) >> 4));
}

/*
 * Returns whether a word is a jump to sdt_probe(). It may be data that looks
 * like one, so only what is in the file is read.
 */
static bool
sdts_is_jump(linker_file_t lf, uintptr_t pc)
{
	uintptr_t to = dtrace_sdts_branch(pc, 0x14000000);

	if (to - (uintptr_t)lf->address < lf->size)
		to = dtrace_sdts_behind_plt(to);
	return (dtrace_sdts_is_caller(to));
}

/* Returns whether the instruction before an address called sdt_probe(). */
static bool
dtrace_sdts_is_after_call(uintptr_t ra)
{
	uintptr_t to = dtrace_sdts_branch(ra - 4, 0x94000000);

	return (to != 0 && dtrace_sdts_is_caller(dtrace_sdts_behind_plt(to)));
}
#endif

/* Takes the hits of tracepoints from now on. */
void
sdts_points_init(void)
{

	linker_file_function_listall(linker_kernel_file, sdts_find_caller,
	    NULL);
	sdt_probe_func = dtrace_sdts_point_hit;
}

void
sdts_points_fini(void)
{

	sdt_probe_func = sdt_probe_stub;
}

/* Sets the bounds of a file's records. Returns how many there are. */
static int
sdts_records(linker_file_t lf, struct sdt_tracepoint **begin)
{
	struct sdt_tracepoint *end;

	if (linker_file_lookup_set(lf, __XSTRING(_SDT_TRACEPOINT_SET), begin,
	    &end, NULL) != 0)
		return (0);
	return (end - *begin);
}

/* Returns how many tracepoints a file has. */
int
sdts_points_count(linker_file_t lf)
{
	struct sdt_tracepoint *tp;

	return (sdts_records(lf, &tp));
}

/* Adds the tracepoints of a file. */
void
sdts_points_load(struct sdts_file *f)
{
	struct sdt_tracepoint *tp;
	struct sdts_site *s;
	int n;

	for (n = sdts_records(f->lf, &tp); n > 0; n--, tp++) {
		if (!sdt_tracepoint_valid(tp->patchpoint, tp->target)) {
			sdts_foreign++;
			printf("sdts: %s: %#jx is no place for a tracepoint\n",
			    f->lf->filename, (uintmax_t)tp->patchpoint);
			continue;
		}
		s = &f->sites[f->n];
		s->probe = tp->probe;
		s->addr = (uint8_t *)tp->patchpoint;
		s->target = tp->target;
		s->form = &sdts_point_form;
		memcpy(&s->expected, s->addr, sizeof(s->expected));
		sdts_add(f, sdts_is_disabled(s->addr));
	}
}

/* Finds the jumps to sdt_probe() of a site's function, or counts them. */
static int
sdts_find_jumps(linker_file_t lf, const struct sdts_site *s,
    struct sdts_site *jumps)
{
	uintptr_t pc, end;
	int n = 0;

	pc = (uintptr_t)s->addr - s->funcoff;
	for (end = pc + s->funcsize; pc + POINT_LEN <= end; pc += STEP)
		if (sdts_is_jump(lf, pc)) {
			if (jumps != NULL) {
				jumps[n].addr = (uint8_t *)pc;
				jumps[n].form = &sdts_jump_form;
				sdts_take(&jumps[n]);
			}
			n++;
		}
	return (n);
}

/* Returns whether a function has no tracepoint before a site of a file. */
static bool
sdts_is_first(const struct sdts_file *f, int k)
{
	const struct sdts_site *s = &f->sites[k];

	while (--k >= 0 && f->sites[k].func == s->func)
		if (f->sites[k].target != 0)
			return (false);
	return (s->target != 0 && s->func != NULL);
}

/* Finds the jumps to sdt_probe() in a file's functions, which are known by now. */
void
sdts_points_scan(struct sdts_file *f)
{
	int k, n = 0;

	for (k = 0; k < f->n; k++)
		if (sdts_is_first(f, k))
			n += sdts_find_jumps(f->lf, &f->sites[k], NULL);
	if (n == 0)
		return;
	f->jumps = malloc(n * sizeof(*f->jumps), M_SDTS, M_WAITOK | M_ZERO);
	for (k = 0; k < f->n; k++)
		if (sdts_is_first(f, k))
			f->njumps += sdts_find_jumps(f->lf, &f->sites[k],
			    f->jumps + f->njumps);
}

/* Returns whether an address is in a site's function. */
static bool
dtrace_sdts_within(const struct sdts_site *s, uintptr_t pc)
{

	return (pc - ((uintptr_t)s->addr - s->funcoff) < s->funcsize);
}

/* Returns a tracepoint of a definition in the function around pc, or NULL. */
static struct sdts_site *
dtrace_sdts_point_at(uint32_t id, uintptr_t pc)
{
	struct sdts_file *f;
	struct sdts_site *s;
	int lo, hi, mid;

	SLIST_FOREACH(f, &sdts_files, link) {
		lo = 0;
		hi = f->n;
		while (lo < hi) {
			mid = (lo + hi) / 2;
			s = &f->sites[mid];
			if ((uintptr_t)s->addr - s->funcoff + s->funcsize <= pc)
				lo = mid + 1;
			else
				hi = mid;
		}
		for (; lo < f->n; lo++) {
			s = &f->sites[lo];
			if (!dtrace_sdts_within(s, pc))
				break;
			if (s->target != 0 && (uint32_t)s->probe->id == id)
				return (s);
		}
	}
	return (NULL);
}

/* Returns the tracepoint whose probe a jump to sdt_probe() fires, or NULL. */
struct sdts_site *
dtrace_sdts_point_of_jump(const struct sdts_site *jump, uint32_t id)
{
	struct sdts_site *s = dtrace_sdts_point_at(id, (uintptr_t)jump->addr);

	return (s != NULL && s->armed ? s : NULL);
}

/* Fires a probe some frames further down. */
static void __noinline
dtrace_sdts_fire_below(int frames, dtrace_id_t id, uintptr_t a0, uintptr_t a1,
    uintptr_t a2, uintptr_t a3, uintptr_t a4)
{

	if (frames > 1)
		dtrace_sdts_fire_below(frames - 1, id, a0, a1, a2, a3, a4);
	else
		dtrace_probe(id, a0, a1, a2, a3, a4);
	__compiler_membar();	/* no tail call, which would have no frame */
}

/*
 * What sdt_probe() and sdt_probe6() call for a tracepoint that is enabled.
 * They may do so by a jump, and have no frame then. So that DTrace skips as
 * many frames as for a breakpoint, those that are missing are added.
 */
static void
dtrace_sdts_point_hit(uint32_t id, uintptr_t a0, uintptr_t a1, uintptr_t a2,
    uintptr_t a3, uintptr_t a4, uintptr_t a5)
{
	uintptr_t *frame = __builtin_frame_address(0);
	uintptr_t ra = frame[1];
	int missing = FRAMES_MISSING;
	struct sdts_site *s;
	solaris_cpu_t *cpu;
	register_t intr;

	if (dtrace_sdts_passes_on(ra)) {
		ra = ((uintptr_t *)frame[0])[1];
		missing--;
	}
	intr = intr_disable();	/* sdts_settle() waits for this to be over */
	cpu = &solaris_cpu[curcpu];
	s = dtrace_sdts_is_after_call(ra) ?
	    dtrace_sdts_point_at(id, ra - 1) : NULL;
	if (s == NULL && id != 0)
		atomic_add_int(&sdts_unplaced, 1);
	if (s != NULL && s->armed) {
		s->hits++;
		sdts_sixth[curcpu] = a5;
		cpu->cpu_dtrace_caller = ra;
		if (missing > 0)
			dtrace_sdts_fire_below(missing, s->owner->id, a0, a1,
			    a2, a3, a4);
		else
			dtrace_probe(s->owner->id, a0, a1, a2, a3, a4);
		cpu->cpu_dtrace_caller = 0;
	}
	intr_restore(intr);
}

/* Returns the sixth argument of the probe that fires. There are no others. */
uint64_t
dtrace_sdts_point_argument(int n)
{

	return (n == 5 ? sdts_sixth[curcpu] : 0);
}

struct sdts_change {
	struct sdts_site *sites;
	u_int	 cpu;
	bool	 arm;
};

/* Changes the code of sites, on one processor. The others wait for it. */
static void
sdts_change(void *arg)
{
	struct sdts_change *c = arg;
	struct sdts_site *s;

	if (curcpu != c->cpu)
		return;
	for (s = c->sites; s != NULL; s = s->onext) {
		if (s->target == 0 || s->armed == c->arm)
			continue;
		if (c->arm && !sdts_is_disabled(s->addr)) {
			sdts_foreign++;
			continue;
		}
		if (c->arm)
			sdt_tracepoint_patch((uintptr_t)s->addr, s->target);
		else
			sdt_tracepoint_restore((uintptr_t)s->addr);
		s->armed = c->arm;
		memcpy(&s->expected, s->addr, sizeof(s->expected));
	}
}

/* Arms the jumps of a tracepoint's function, or disarms them. */
static void
sdts_change_jumps(const struct sdts_site *s, bool arm)
{
	struct sdts_file *f;
	struct sdts_site *j;

	SLIST_FOREACH(f, &sdts_files, link)
		for (j = f->jumps; j < f->jumps + f->njumps; j++) {
			if (dtrace_sdts_within(s, (uintptr_t)j->addr))
				sdts_want(j, arm);
		}
}

/* Arms or disarms all tracepoints of a DTrace probe. */
static void
sdts_points_change(struct sdts_probe *owner, bool arm)
{
	struct sdts_change c = { .sites = owner->sites, .arm = arm };
	struct sdts_site *s;

	for (s = owner->sites; arm && s != NULL; s = s->onext)
		if (s->target != 0)
			sdts_change_jumps(s, true);
	sched_pin();
	c.cpu = curcpu;
	smp_rendezvous(NULL, sdts_change, NULL, &c);
	sched_unpin();
	for (s = owner->sites; !arm && s != NULL; s = s->onext)
		if (s->target != 0)
			sdts_change_jumps(s, false);
}

/* Returns whether a definition has another DTrace probe that is enabled. */
static bool
sdts_in_use(const struct sdts_probe *owner)
{
	struct sdts_file *f;
	const struct sdts_probe *p;
	int k;

	SLIST_FOREACH(f, &sdts_files, link)
		for (k = 0; k < f->n; k++) {
			p = f->sites[k].owner;
			if (p != NULL && p != owner && p->enabled &&
			    p->probe == owner->probe)
				return (true);
		}
	return (false);
}

/*
 * Enables the tracepoints of a DTrace probe. Its definition has a number
 * while one is enabled, which SDT_PROBE_ENABLED() asks for.
 */
void
sdts_points_enable(struct sdts_probe *owner)
{

	if (owner->probe->id == 0)
		owner->probe->id = ++sdts_last_id;
	sdts_points_change(owner, true);
}

void
sdts_points_disable(struct sdts_probe *owner)
{

	sdts_points_change(owner, false);
	if (!sdts_in_use(owner))
		owner->probe->id = 0;
}

#endif /* _SDT_TRACEPOINT_SET */
