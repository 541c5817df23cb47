/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A DTrace provider of SDT(9) probes by their sites. The kernel's own,
 * sdt.ko, makes one DTrace probe of each definition, and its function is
 * "none". This one reads the records that `sdtconvert --layout freebsd'
 * leaves of each site, and those of FreeBSD 15's own tracepoints, and makes a
 * DTrace probe of all sites of a definition that are in the same function.
 *
 * The module calls itself sdt, as the kernel's does: the kernel linker loads
 * only one of the two, and what depends on sdt, as dtraceall.ko does, takes
 * either.
 *
 * Locks, in this order: the kernel linker's, sdts_lock for the lists of files
 * and providers, DTrace's, and sdts_sites for the state of sites. The handler
 * of breakpoints takes none; sdts_sites.c says why that is safe.
 */
#include <sys/param.h>
#include <sys/systm.h>
#include <sys/conf.h>
#include <sys/eventhandler.h>
#include <sys/kernel.h>
#include <sys/limits.h>
#include <sys/linker.h>
#include <sys/linker_set.h>
#include <sys/lock.h>
#include <sys/lockstat.h>
#include <sys/malloc.h>
#include <sys/module.h>
#include <sys/mutex.h>
#include <sys/queue.h>
#include <sys/sbuf.h>
#include <sys/sdt.h>
#include <sys/sx.h>
#include <sys/sysctl.h>

#include <sys/dtrace.h>
#include <sys/dtrace_bsd.h>

#include <sdt_forms.h>

#include "sdts.h"

struct sdts_provider {
	SLIST_ENTRY(sdts_provider) link;
	dtrace_provider_id_t id;
	char		 name[DTRACE_PROVNAMELEN];
};

MALLOC_DEFINE(M_SDTS, "sdts", "DTrace SDT sites");
static SLIST_HEAD(, sdts_provider) sdts_providers =
    SLIST_HEAD_INITIALIZER(sdts_providers);
struct sdts_files sdts_files = SLIST_HEAD_INITIALIZER(sdts_files);
static struct sx sdts_lock;
SX_SYSINIT(sdts_lock, &sdts_lock, "sdts files");
static struct mtx sdts_sites;
MTX_SYSINIT(sdts_sites, &sdts_sites, "sdts sites", MTX_DEF);
static int sdts_enabled, sdts_lockstat;	/* counts, under DTrace's lock */
static eventhandler_tag sdts_load_tag, sdts_try_tag, sdts_unload_tag;

static void	sdts_provide(void *, dtrace_probedesc_t *);
static void	sdts_enable(void *, dtrace_id_t, void *);
static void	sdts_disable(void *, dtrace_id_t, void *);
static void	sdts_destroy(void *, dtrace_id_t, void *);
static void	sdts_getargdesc(void *, dtrace_id_t, void *,
		    dtrace_argdesc_t *);

static dtrace_pattr_t sdts_attr = {
{ DTRACE_STABILITY_EVOLVING, DTRACE_STABILITY_EVOLVING, DTRACE_CLASS_COMMON },
{ DTRACE_STABILITY_PRIVATE, DTRACE_STABILITY_PRIVATE, DTRACE_CLASS_UNKNOWN },
{ DTRACE_STABILITY_PRIVATE, DTRACE_STABILITY_PRIVATE, DTRACE_CLASS_ISA },
{ DTRACE_STABILITY_EVOLVING, DTRACE_STABILITY_EVOLVING, DTRACE_CLASS_COMMON },
{ DTRACE_STABILITY_PRIVATE, DTRACE_STABILITY_PRIVATE, DTRACE_CLASS_ISA },
};

static dtrace_pops_t sdts_pops = {
	.dtps_provide =		sdts_provide,
	.dtps_enable =		sdts_enable,
	.dtps_disable =		sdts_disable,
	.dtps_getargdesc =	sdts_getargdesc,
	.dtps_getargval =	dtrace_sdts_getargval,
	.dtps_destroy =		sdts_destroy,
};

/* Copies a name as DTrace shows it: with a dash for two underscores. */
static void
sdts_dashes(char *to, size_t size, const char *from)
{
	size_t n;

	for (n = 0; n + 1 < size && *from != '\0'; n++, from++)
		if (from[0] == '_' && from[1] == '_') {
			to[n] = '-';
			from++;
		} else
			to[n] = from[0];
	to[n] = '\0';
}

/* Returns the provider of a name, registered if it has to be, or NULL. */
static struct sdts_provider *
sdts_provider(const char *name)
{
	struct sdts_provider *p;
	char buf[DTRACE_PROVNAMELEN];

	sdts_dashes(buf, sizeof(buf), name);
	SLIST_FOREACH(p, &sdts_providers, link)
		if (strcmp(p->name, buf) == 0)
			return (p);
	p = malloc(sizeof(*p), M_SDTS, M_WAITOK | M_ZERO);
	strlcpy(p->name, buf, sizeof(p->name));
	if (dtrace_register(p->name, &sdts_attr, DTRACE_PRIV_USER, NULL,
	    &sdts_pops, NULL, &p->id) != 0) {
		printf("sdts: provider %s cannot be registered\n", p->name);
		free(p, M_SDTS);
		return (NULL);
	}
	SLIST_INSERT_HEAD(&sdts_providers, p, link);
	return (p);
}

/* Sets the module of a probe: its own, or the file without .ko. */
static void
sdts_module(char *mod, size_t size, const struct sdt_probe *probe,
    linker_file_t lf)
{
	size_t n;

	if (*probe->mod != '\0') {
		strlcpy(mod, probe->mod, size);
		return;
	}
	n = strlcpy(mod, lf->filename, size);
	if (n > 3 && n < size && strcmp(mod + n - 3, ".ko") == 0)
		mod[n - 3] = '\0';
}

/*
 * Returns how many arguments a probe has: those that it declares, or more for
 * three probes of the kernel, whose callers pass others. lockstat(1) reads
 * those of rw-spin and sx-spin.
 */
static int
sdts_nargs(const struct sdt_probe *probe)
{
	static const struct {
		const char *prov, *name;
		int	 n;
	} more[] = {
		{ "lockstat", "rw__spin", 5 },
		{ "lockstat", "sx__spin", 5 },
		{ "vfs", "miss", 3 },
	};
	u_int i;

	for (i = 0; i < nitems(more); i++)
		if (strcmp(probe->prov->name, more[i].prov) == 0 &&
		    strcmp(probe->name, more[i].name) == 0)
			return (MAX(more[i].n, probe->n_args));
	return (probe->n_args);
}

/* What DTrace knows a probe by, besides its function. */
struct sdts_names {
	struct sdts_provider *prov;
	char mod[DTRACE_MODNAMELEN], name[DTRACE_NAMELEN];
};

/* Sets the names of a definition. Returns false if it can have no DTrace probe. */
static bool
sdts_names(struct sdts_names *names, struct sdts_file *f,
    struct sdt_probe *probe)
{

	if ((names->prov = sdts_provider(probe->prov->name)) == NULL)
		return (false);
	sdts_module(names->mod, sizeof(names->mod), probe, f->lf);
	sdts_dashes(names->name, sizeof(names->name), probe->name);
	return (true);
}

/*
 * Returns the DTrace probe of a definition in a function, made if it has to
 * be, or NULL.
 */
static struct sdts_probe *
sdts_owner(struct sdts_file *f, struct sdt_probe *probe, const char *func)
{
	struct sdts_names n;
	struct sdts_probe *owner;
	dtrace_id_t id;

	if (!sdts_names(&n, f, probe))
		return (NULL);
	if (*probe->func != '\0')
		func = probe->func;
	id = dtrace_probe_lookup(n.prov->id, n.mod, __DECONST(char *, func),
	    n.name);
	if (id != DTRACE_IDNONE)
		return (dtrace_probe_arg(n.prov->id, id));
	owner = malloc(sizeof(*owner), M_SDTS, M_WAITOK | M_ZERO);
	owner->probe = probe;
	owner->lf = f->lf;
	owner->lockstat = strcmp(n.prov->name, "lockstat") == 0;
	owner->id = dtrace_probe_create(n.prov->id, n.mod, func, n.name,
	    SDTS_AFRAMES, owner);
	return (owner);
}

/* Adds a site to the DTrace probe that it belongs to, maybe a new one. */
static void
sdts_own(struct sdts_file *f, struct sdts_site *s)
{
	struct sdts_probe *owner;

	owner = sdts_owner(f, s->probe, s->func != NULL ? s->func : "none");
	if (owner == NULL)
		return;
	/* Callers in FreeBSD 15's tracepoints pass zeros for the others. */
	s->nargs = s->target != 0 ? INT_MAX : sdts_nargs(s->probe);
	mtx_lock(&sdts_sites);
	s->owner = owner;
	s->onext = owner->sites;
	owner->sites = s;
	mtx_unlock(&sdts_sites);
}

/*
 * Makes DTrace probes of a file's definitions that have no site in it, unless
 * a site of another definition has the same names.
 */
static void
sdts_own_siteless(struct sdts_file *f)
{
	struct sdt_probe **p, **end;
	struct sdts_names n;
	struct sdts_probe *owner;
	char *func;

	if (linker_file_lookup_set(f->lf, "sdt_probes_set", &p, &end,
	    NULL) != 0)
		return;
	for (; p < end; p++) {
		if ((*p)->version != (int)sizeof(**p) ||
		    !sdts_names(&n, f, *p))
			continue;
		func = *(*p)->func != '\0' ? __DECONST(char *, (*p)->func) :
		    NULL;	/* any */
		if (dtrace_probe_lookup(n.prov->id, n.mod, func, n.name) !=
		    DTRACE_IDNONE ||
		    (owner = sdts_owner(f, *p, "none")) == NULL)
			continue;
		mtx_lock(&sdts_sites);
		owner->file = f;
		SLIST_INSERT_HEAD(&f->siteless, owner, link);
		mtx_unlock(&sdts_sites);
	}
}

static int
sdts_bysite(const void *a, const void *b)
{
	const struct sdts_site *x = a, *y = b;

	return (x->addr < y->addr ? -1 : x->addr > y->addr);
}

/* Gives the sites within a function its name. */
static int
sdts_function(linker_file_t lf __unused, int ndx __unused, linker_symval_t *v,
    void *arg)
{
	struct sdts_file *f = arg;
	uint8_t *start = (uint8_t *)v->value;
	int lo = 0, hi = f->n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (f->sites[mid].addr < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < f->n && f->sites[lo].addr < start + v->size; lo++)
		if (f->sites[lo].func == NULL) {
			f->sites[lo].func = v->name;
			f->sites[lo].funcoff = f->sites[lo].addr - start;
			f->sites[lo].funcsize = v->size;
		}
	return (0);
}

/*
 * Fills in what the structures of a file leave to the reader: the file, and
 * the types of arguments. Returns how many probes the file defines.
 */
static int
sdts_load_types(linker_file_t lf)
{
	struct sdt_probe **p, **pbegin, **pend;
	struct sdt_argtype **a, **abegin, **aend;
	int n = 0;

	if (linker_file_lookup_set(lf, "sdt_probes_set", &pbegin, &pend,
	    &n) == 0)
		for (p = pbegin; p < pend; p++) {
			(*p)->sdtp_lf = lf;
			(*p)->n_args = 0;
			TAILQ_INIT(&(*p)->argtype_list);
		}
	if (linker_file_lookup_set(lf, "sdt_argtypes_set", &abegin, &aend,
	    NULL) == 0)
		for (a = abegin; a < aend; a++) {
			(*a)->probe->n_args++;
			TAILQ_INSERT_TAIL(&(*a)->probe->argtype_list, *a,
			    argtype_entry);
		}
	return (n);
}

/* Keeps the site that was written behind a file's last, or says what is wrong. */
void
sdts_add(struct sdts_file *f, bool expected)
{
	struct sdts_site *s = &f->sites[f->n];

	if (s->probe->version != (int)sizeof(*s->probe))
		printf("sdts: %s: %p: a probe of version %d, want %d\n",
		    f->lf->filename, s->addr, s->probe->version,
		    (int)sizeof(*s->probe));
	else if (!expected) {
		sdts_foreign++;
		printf("sdts: %s: %p: %02x %02x %02x %02x is not a site\n",
		    f->lf->filename, s->addr, s->addr[0], s->addr[1],
		    s->addr[2], s->addr[3]);
	} else {
		f->n++;
		return;
	}
	memset(s, 0, sizeof(*s));
}

/* Adds the sites of sdtconvert's records to a file's. */
static void
sdts_load_records(struct sdts_file *f, const char *set, bool test)
{
	struct sdts_record **r, **end;
	struct sdts_site *s;

	if (linker_file_lookup_set(f->lf, set, &r, &end, NULL) != 0)
		return;
	for (; r < end; r++) {
		s = &f->sites[f->n];
		s->addr = (uint8_t *)(*r)->offset;
		s->probe = (*r)->probe;
		sdts_add(f, sdts_classify(s, test));
	}
}

/* Returns how many records a file has in a set of sdtconvert's. */
static int
sdts_count_records(linker_file_t lf, const char *set)
{
	struct sdts_record **r, **end;
	int n;

	return (linker_file_lookup_set(lf, set, &r, &end, &n) == 0 ? n : 0);
}

/* Makes the DTrace probes of a file that do not exist yet. */
static void
sdts_own_all(struct sdts_file *f)
{
	int k;

	for (k = 0; k < f->n; k++)
		if (!f->sites[k].form->test && f->sites[k].owner == NULL)
			sdts_own(f, &f->sites[k]);
	sdts_own_siteless(f);
}

/* A file was loaded. */
static void
sdts_kld_load(void *arg __unused, linker_file_t lf)
{
	struct sdts_file *f;
	int k, n, nprobes;

	sx_xlock(&sdts_lock);
	SLIST_FOREACH(f, &sdts_files, link)
		if (f->lf == lf)	/* this module, which was met before */
			goto out;
	nprobes = sdts_load_types(lf);
	n = sdts_count_records(lf, "sdt_instances_set") +
	    sdts_count_records(lf, "sdt_isenabled_set") + sdts_points_count(lf);
	if (n == 0) {
		if (nprobes > 0)
			printf("sdts: %s: %d probes and no record of a site; "
			    "convert it, and link it so that "
			    "__start_set_sdt_instances_set is defined\n",
			    lf->filename, nprobes);
		goto out;
	}
	f = malloc(sizeof(*f), M_SDTS, M_WAITOK | M_ZERO);
	f->lf = lf;
	f->sites = malloc(n * sizeof(*f->sites), M_SDTS, M_WAITOK | M_ZERO);
	sdts_load_records(f, "sdt_instances_set", false);
	sdts_load_records(f, "sdt_isenabled_set", true);
	sdts_points_load(f);
	qsort(f->sites, f->n, sizeof(*f->sites), sdts_bysite);
	linker_file_function_listall(lf, sdts_function, f);
	sdts_points_scan(f);
	mtx_lock(&sdts_sites);
	for (k = 0; k < f->n; k++)
		if (f->sites[k].target == 0)
			sdts_hash(&f->sites[k]);
	for (k = 0; k < f->njumps; k++)
		sdts_hash(&f->jumps[k]);
	SLIST_INSERT_HEAD(&sdts_files, f, link);
	mtx_unlock(&sdts_sites);
	sdts_own_all(f);
	if (bootverbose)
		printf("sdts: %s: %d sites\n", lf->filename, f->n);
out:
	sx_xunlock(&sdts_lock);
}

/* A file is about to be unloaded. DTrace destroys its probes. */
static void
sdts_kld_unload_try(void *arg __unused, linker_file_t lf, int *error)
{
	struct sdts_file *f;
	int k;

	if (*error != 0)
		return;
	mtx_lock(&sdts_sites);
	SLIST_FOREACH(f, &sdts_files, link) {
		if (f->lf != lf)
			continue;
		for (k = 0; k < f->n; k++)
			if (f->sites[k].armed)
				*error = EBUSY;
	}
	mtx_unlock(&sdts_sites);
}

/* Takes the sites of a file out of all lists, and frees it. */
static void
sdts_free_file(struct sdts_file *f)
{
	struct sdts_probe *owner;
	struct sdts_site **s;
	int k;

	mtx_lock(&sdts_sites);
	SLIST_REMOVE(&sdts_files, f, sdts_file, link);
	SLIST_FOREACH(owner, &f->siteless, link) {
		owner->dead = true;
		owner->file = NULL;
	}
	for (k = 0; k < f->n; k++) {
		f->sites[k].dead = true;
		sdts_unhash(&f->sites[k]);
		if ((owner = f->sites[k].owner) == NULL)
			continue;
		owner->dead = owner->dead || owner->lf == f->lf;
		for (s = &owner->sites; *s != NULL; s = &(*s)->onext)
			if (*s == &f->sites[k]) {
				*s = (*s)->onext;
				break;
			}
	}
	for (k = 0; k < f->njumps; k++) {
		f->jumps[k].dead = true;
		sdts_unhash(&f->jumps[k]);
	}
	mtx_unlock(&sdts_sites);
	sdts_settle();
	free(f->sites, M_SDTS);
	free(f->jumps, M_SDTS);
	free(f, M_SDTS);
}

/* A file was unloaded: its linker_file_t is gone, its addresses are free. */
static void
sdts_kld_unload(void *arg __unused, const char *name __unused, caddr_t addr,
    size_t size)
{
	struct sdts_file *f, *next;

	sx_xlock(&sdts_lock);
	SLIST_FOREACH_SAFE(f, &sdts_files, link, next)
		if (f->n > 0 && (caddr_t)f->sites[0].addr >= addr &&
		    (caddr_t)f->sites[0].addr < addr + size)
			sdts_free_file(f);
	sx_xunlock(&sdts_lock);
}

static void
sdts_provide(void *arg __unused, dtrace_probedesc_t *desc __unused)
{
	/* Probes are made when files are loaded. DTrace wants this anyway. */
}

/* Switches the tests of a probe. They belong to all DTrace probes of it. */
static void
sdts_switch_tests(struct sdt_probe *probe, bool on)
{
	struct sdts_file *f;
	struct sdts_site *s;
	int k;

	SLIST_FOREACH(f, &sdts_files, link)
		for (k = 0; k < f->n; k++) {
			s = &f->sites[k];
			if (!s->form->test || s->probe != probe)
				continue;
			sdts_want(s, on);
		}
}

/* Marks what was disarmed as such. No processor is in its handler any more. */
static void
sdts_disarmed(struct sdts_probe *owner)
{
	struct sdts_file *f;
	struct sdts_site *s;
	int k;

	for (s = owner->sites; s != NULL; s = s->onext)
		s->armed = false;
	SLIST_FOREACH(f, &sdts_files, link) {
		for (k = 0; k < f->n; k++) {
			s = &f->sites[k];
			if (s->form->test && s->probe == owner->probe &&
			    s->refs == 0)
				s->armed = false;
		}
		for (k = 0; k < f->njumps; k++)
			if (f->jumps[k].refs == 0)
				f->jumps[k].armed = false;
	}
}

/*
 * Code outside of the tracepoints asks these two flags before it evaluates
 * arguments, so they are kept as sdt.ko keeps them.
 */
static void
sdts_count(struct sdts_probe *owner, int n)
{

	sdts_enabled += n;
	sdt_probes_enabled = sdts_enabled != 0;
	if (owner->lockstat) {
		sdts_lockstat += n;
		lockstat_enabled = sdts_lockstat != 0;
	}
}

static void
sdts_enable(void *arg __unused, dtrace_id_t id __unused, void *parg)
{
	struct sdts_probe *owner = parg;
	struct sdts_site *s;

	if (owner->dead)
		return;
	sdts_count(owner, 1);
	owner->lf->nenabled++;
	owner->enabled = true;
	mtx_lock(&sdts_sites);
	for (s = owner->sites; s != NULL; s = s->onext)
		sdts_arm(s);
	sdts_switch_tests(owner->probe, true);
	sdts_points_enable(owner);
	mtx_unlock(&sdts_sites);
	sdts_settle();
}

static void
sdts_disable(void *arg __unused, dtrace_id_t id __unused, void *parg)
{
	struct sdts_probe *owner = parg;
	struct sdts_site *s;

	if (owner->dead)
		return;
	mtx_lock(&sdts_sites);
	owner->enabled = false;
	sdts_switch_tests(owner->probe, false);
	for (s = owner->sites; s != NULL; s = s->onext)
		sdts_disarm(s);
	sdts_points_disable(owner);
	mtx_unlock(&sdts_sites);
	sdts_settle();
	mtx_lock(&sdts_sites);
	sdts_disarmed(owner);
	mtx_unlock(&sdts_sites);
	owner->lf->nenabled--;
	sdts_count(owner, -1);
}

static void
sdts_destroy(void *arg __unused, dtrace_id_t id __unused, void *parg)
{
	struct sdts_probe *owner = parg;
	struct sdts_site *s;

	mtx_lock(&sdts_sites);
	for (s = owner->sites; s != NULL; s = s->onext)
		s->owner = NULL;
	if (owner->file != NULL)
		SLIST_REMOVE(&owner->file->siteless, owner, sdts_probe, link);
	mtx_unlock(&sdts_sites);
	free(owner, M_SDTS);
}

static void
sdts_getargdesc(void *arg __unused, dtrace_id_t id __unused, void *parg,
    dtrace_argdesc_t *desc)
{
	struct sdts_probe *owner = parg;
	struct sdt_argtype *a;

	if (owner->dead || desc->dtargd_ndx >= owner->probe->n_args) {
		desc->dtargd_ndx = DTRACE_ARGNONE;
		return;
	}
	TAILQ_FOREACH(a, &owner->probe->argtype_list, argtype_entry) {
		if (a->ndx != desc->dtargd_ndx)
			continue;
		desc->dtargd_mapping = a->ndx;
		if (a->type != NULL)
			strlcpy(desc->dtargd_native, a->type,
			    sizeof(desc->dtargd_native));
		if (a->xtype != NULL)
			strlcpy(desc->dtargd_xlate, a->xtype,
			    sizeof(desc->dtargd_xlate));
	}
}

static int
sdts_load_file(linker_file_t lf, void *arg __unused)
{

	sdts_kld_load(NULL, lf);
	return (0);
}

static int
sdts_load(void)
{

	dtrace_invop_add(dtrace_sdts_invop);
	sdts_points_init();
	sdts_load_tag = EVENTHANDLER_REGISTER(kld_load, sdts_kld_load, NULL,
	    EVENTHANDLER_PRI_ANY);
	sdts_try_tag = EVENTHANDLER_REGISTER(kld_unload_try,
	    sdts_kld_unload_try, NULL, EVENTHANDLER_PRI_FIRST);
	sdts_unload_tag = EVENTHANDLER_REGISTER(kld_unload, sdts_kld_unload,
	    NULL, EVENTHANDLER_PRI_ANY);
	linker_file_foreach(sdts_load_file, NULL);
	return (0);
}

/*
 * Unregisters all providers, or none. DTrace refuses while a process has it
 * open, which may be from the middle of the list on: those that are gone by
 * then come back.
 */
static int
sdts_unregister(void)
{
	struct sdts_provider *p;
	struct sdts_file *f;
	int error;

	while ((p = SLIST_FIRST(&sdts_providers)) != NULL) {
		if ((error = dtrace_unregister(p->id)) != 0) {
			SLIST_FOREACH(f, &sdts_files, link)
				sdts_own_all(f);
			return (error);
		}
		SLIST_REMOVE_HEAD(&sdts_providers, link);
		free(p, M_SDTS);
	}
	return (0);
}

static int
sdts_unload(void)
{
	struct sdts_file *f;
	int error;

	if (sdts_enabled != 0)
		return (EBUSY);
	sx_xlock(&sdts_lock);
	error = sdts_unregister();
	sx_xunlock(&sdts_lock);
	if (error != 0)
		return (error);
	EVENTHANDLER_DEREGISTER(kld_load, sdts_load_tag);
	EVENTHANDLER_DEREGISTER(kld_unload_try, sdts_try_tag);
	EVENTHANDLER_DEREGISTER(kld_unload, sdts_unload_tag);
	dtrace_invop_remove(dtrace_sdts_invop);
	sdts_points_fini();
	while ((f = SLIST_FIRST(&sdts_files)) != NULL)
		sdts_free_file(f);
	return (0);
}

static int
sdts_modevent(module_t mod __unused, int type, void *data __unused)
{

	switch (type) {
	case MOD_LOAD:
		return (sdts_load());
	case MOD_QUIESCE:
		return (sdts_enabled != 0 ? EBUSY : 0);
	case MOD_UNLOAD:
		return (sdts_unload());
	case MOD_SHUTDOWN:
		return (0);
	default:
		return (EOPNOTSUPP);
	}
}

/* Prints sites, all of them or those that were hit, and a line of sums. */
static int
sdts_sysctl(SYSCTL_HANDLER_ARGS)
{
	struct sbuf *sb;
	struct sdts_file *f;
	const struct sdts_site *s;
	bool all = arg2 != 0;
	int k, error, n = 0, armed = 0, changed = 0;

	sb = sbuf_new_auto();
	sx_slock(&sdts_lock);
	SLIST_FOREACH(f, &sdts_files, link) {
		for (k = 0; k < f->n; k++) {
			s = &f->sites[k];
			n++;
			armed += s->armed;
			changed += !sdts_as_expected(s);
			if (!all && s->hits == 0)
				continue;
			sbuf_printf(sb, "%p %s+0x%lx %s %s:%s %lu%s%s\n",
			    s->addr, s->func == NULL ? "?" : s->func,
			    s->funcoff, s->target != 0 ? "tracepoint" :
			    s->form->test ? "test" :
			    s->form->tail ? "tail" : "call",
			    s->probe->prov->name, s->probe->name, s->hits,
			    s->armed ? " armed" : "",
			    sdts_as_expected(s) ? "" : " changed");
		}
		for (k = 0; k < f->njumps; k++)
			changed += !sdts_as_expected(&f->jumps[k]);
	}
	sx_sunlock(&sdts_lock);
	sbuf_printf(sb, "sites %d armed %d changed %d foreign %d unplaced %u "
	    "enabled %d\n", n, armed, changed, sdts_foreign, sdts_unplaced,
	    sdts_enabled);
	sbuf_finish(sb);
	error = SYSCTL_OUT(req, sbuf_data(sb), sbuf_len(sb) + 1);
	sbuf_delete(sb);
	return (error);
}

static SYSCTL_NODE(_debug, OID_AUTO, sdts, CTLFLAG_RD, 0, "SDT sites");
SYSCTL_PROC(_debug_sdts, OID_AUTO, sites,
    CTLTYPE_STRING | CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, 1, sdts_sysctl, "A",
    "All sites, with their hits");
SYSCTL_PROC(_debug_sdts, OID_AUTO, hits,
    CTLTYPE_STRING | CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, 0, sdts_sysctl, "A",
    "The sites that were hit");

DEV_MODULE(sdt, sdts_modevent, NULL);
MODULE_VERSION(sdt, 1);
MODULE_DEPEND(sdt, dtrace, 1, 1, 1);
MODULE_DEPEND(sdt, opensolaris, 1, 1, 1);
