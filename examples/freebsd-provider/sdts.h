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
	struct sdt_probe *probe;
	const char	*func;		/* that encloses it, or NULL */
	u_long		 funcoff;
	u_long		 hits;
	uint32_t	 saved;		/* what a breakpoint is put over */
	int		 refs;		/* of a test: enabled DTrace probes */
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
	struct sdts_site *sites;
	linker_file_t	 lf;
	bool		 lockstat;
	bool		 dead;
};

/* A linker file with sites, sorted by address. */
struct sdts_file {
	SLIST_ENTRY(sdts_file) link;
	linker_file_t	 lf;
	int		 n;
	struct sdts_site *sites;
};
SLIST_HEAD(sdts_files, sdts_file);

extern int sdts_foreign;

void	sdts_hash(struct sdts_site *);
void	sdts_unhash(struct sdts_site *);
void	sdts_arm(struct sdts_site *);
void	sdts_disarm(struct sdts_site *);
void	sdts_settle(void);
bool	sdts_classify(struct sdts_site *, bool);
bool	sdts_as_expected(const struct sdts_site *);
int	sdts_invop(uintptr_t, struct trapframe *, uintptr_t);
uint64_t sdts_getargval(void *, dtrace_id_t, void *, int, int);

#endif /* !SDTS_H */
