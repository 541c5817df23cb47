/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SDTS_H
#define	SDTS_H

struct sdts_probe;

/* A record of sdtconvert, as --layout freebsd writes it. */
struct sdts_record {
	struct sdt_probe *probe;
	uintptr_t	 offset;
};

/* One site of a probe or a test. */
struct sdts_site {
	uint8_t		*addr;
	const struct sdt_form *form;
	struct sdt_probe *probe;	/* NULL for a jump to sdt_probe() */
	const char	*func;		/* that encloses it, or NULL */
	u_long		 funcoff, funcsize;
	u_long		 hits;
	uint32_t	 saved;		/* what a breakpoint is put over */
	uint32_t	 expected;	/* what the code begins with now */
	uintptr_t	 target;	/* of a tracepoint of FreeBSD 15, or 0 */
	int		 refs;		/* of a test or a jump: what needs it armed */
	int		 nargs;		/* that its probe has */
	bool		 armed;
	bool		 shared;	/* armed by another provider, too */
	bool		 dead;		/* its code was unloaded */
	struct sdts_probe *owner;	/* NULL for a test */
	struct sdts_site *onext;	/* of the same owner */
	struct sdts_site *volatile hnext; /* of the same hash bucket */
};

/* One DTrace probe: a provider, module, function and name. */
struct sdts_probe {
	dtrace_id_t	 id;
	struct sdt_probe *probe;
	struct sdts_site *sites;	/* NULL if the probe has none anywhere */
	SLIST_ENTRY(sdts_probe) link;	/* of those without sites in file */
	struct sdts_file *file;		/* NULL if it has sites */
	linker_file_t	 lf;
	bool		 lockstat;
	bool		 enabled;
	bool		 dead;
};

/*
 * A linker file with sites, sorted by address, and with the jumps to
 * sdt_probe() in functions that have tracepoints of FreeBSD 15.
 */
struct sdts_file {
	SLIST_ENTRY(sdts_file) link;
	linker_file_t	 lf;
	int		 n, njumps;
	struct sdts_site *sites, *jumps;
	SLIST_HEAD(, sdts_probe) siteless;
};
SLIST_HEAD(sdts_files, sdts_file);

/*
 * The frames of a stack that DTrace skips to get from dtrace_probe() to the
 * probed function, in FreeBSD 12.1.
 */
#define	SDTS_AFRAMES	4

MALLOC_DECLARE(M_SDTS);
extern struct sdts_files sdts_files;
extern int sdts_foreign;

void	sdts_hash(struct sdts_site *);
void	sdts_unhash(struct sdts_site *);
void	sdts_arm(struct sdts_site *);
void	sdts_disarm(struct sdts_site *);
void	sdts_want(struct sdts_site *, bool);
void	sdts_settle(void);
bool	sdts_classify(struct sdts_site *, bool);
void	sdts_take(struct sdts_site *);
bool	sdts_as_expected(const struct sdts_site *);
int	dtrace_sdts_invop(uintptr_t, struct trapframe *, uintptr_t);
uint64_t dtrace_sdts_getargval(void *, dtrace_id_t, void *, int, int);

void	sdts_add(struct sdts_file *, bool);

#ifdef _SDT_TRACEPOINT_SET
extern u_int sdts_unplaced;

void	sdts_points_init(void);
void	sdts_points_fini(void);
int	sdts_points_count(linker_file_t);
void	sdts_points_load(struct sdts_file *);
void	sdts_points_scan(struct sdts_file *);
void	sdts_points_enable(struct sdts_probe *);
void	sdts_points_disable(struct sdts_probe *);
struct sdts_site *dtrace_sdts_point_of_jump(const struct sdts_site *, uint32_t);
uint64_t dtrace_sdts_point_argument(int);
#else
/* Kernels before FreeBSD 15 have no tracepoints of their own. */
#define	sdts_unplaced			0
#define	sdts_points_init()		do { } while (0)
#define	sdts_points_fini()		do { } while (0)
#define	sdts_points_count(lf)		0
#define	sdts_points_load(f)		do { } while (0)
#define	sdts_points_scan(f)		do { } while (0)
#define	sdts_points_enable(owner)	do { } while (0)
#define	sdts_points_disable(owner)	do { } while (0)
#define	dtrace_sdts_point_of_jump(j, id)	((struct sdts_site *)NULL)
#define	dtrace_sdts_point_argument(n)		0
#endif

#endif /* !SDTS_H */
