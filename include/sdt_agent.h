/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * For a program, or a library that is preloaded, which finds the probes of its
 * own process and switches them on. Linux; C99 and C++11; no library.
 *
 *	static void hit(const struct sdt_agent_hit *h, void *data) {
 *		... h->site->name, h->site->function, h->args[0] ...
 *	}
 *	sdt_agent_start();
 *	n = sdt_agent_on("app:::request-*", hit, NULL);
 *	if (n < 0)
 *		puts(sdt_agent_reason(n));
 *	...
 *	sdt_agent_off("app:::request-*");
 *
 * Include it in one file. It keeps all its data in static memory, allocates
 * nothing and calls no stdio. After sdt_agent_start, sdt_agent_each and
 * sdt_agent_at may be called in signal handlers, as the handler of a probe may.
 *
 * It reads the tables of functions that sdtconvert puts into programs for
 * Linux (docs/records.md), wherever the image is loaded. Images without tables
 * have no probes for it.
 */
#ifndef SDTCONVERT_SDT_AGENT_H
#define	SDTCONVERT_SDT_AGENT_H

#if !defined(_GNU_SOURCE)
#ifdef _FEATURES_H
#error "sdt_agent.h: include it before other headers, or define _GNU_SOURCE"
#endif
#define	_GNU_SOURCE
#endif
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "sdt_forms.h"

#ifndef SDT_AGENT_IMAGES
#define	SDT_AGENT_IMAGES	64	/* that have tables */
#endif
#ifndef SDT_AGENT_SITES
#define	SDT_AGENT_SITES		1024	/* that were ever switched on */
#endif

/* Why something cannot be done. Results that are not negative are counts. */
enum sdt_agent_error {
	SDT_AGENT_NO_SITE = -1,		/* no site matches */
	SDT_AGENT_TAKEN = -2,		/* another tracer, or this one, has armed the site */
	SDT_AGENT_FORM = -3,		/* the code at the site is no disabled form */
	SDT_AGENT_MACHINE = -4,		/* no calls are armed on this machine */
	SDT_AGENT_WRITE = -5,		/* the code cannot be written */
	SDT_AGENT_FULL = -6,		/* more than SDT_AGENT_SITES or SDT_AGENT_IMAGES */
	SDT_AGENT_NOT_STARTED = -7,
	SDT_AGENT_SIGNAL = -8,		/* SIGTRAP cannot be handled, or a thread blocks it */
	SDT_AGENT_MEMORY = -9		/* the own memory cannot be read */
};

enum sdt_agent_way {
	SDT_AGENT_BY_SEMAPHORE,		/* a test that loads its semaphore */
	SDT_AGENT_BY_BREAKPOINT,
	SDT_AGENT_BY_JUMP
};

struct sdt_agent_site {
	char provider[64];		/* names as people read them, cut to what fits */
	char module[64];		/* of the definition, or the image's file */
	char function[192];		/* the symbol, as mangled; "" if not known */
	char name[128];
	char types[192];		/* of the arguments, separated by "; "; "" if not known */
	char operands[512];		/* of a NOP from the start; "" if they are not known */
	uintptr_t address;
	uintptr_t offset;		/* from the beginning of the function */
	uint16_t *semaphore;		/* NULL for none, or if another object defines it */
	const void *probe;		/* its struct sdt_probe; NULL if there are no records */
	int is_test;			/* an is-enabled test, and not a call */
	int is_nop;			/* a NOP from the start, and never a call */
};

struct sdt_agent_hit {
	const struct sdt_agent_site *site;
	int count;			/* of args */
	unsigned known;			/* bit i: args[i] is known */
	uintptr_t args[12];		/* extended as their types are */
};

typedef void sdt_agent_handler(const struct sdt_agent_hit *hit, void *data);
/* Returns 0 to go on. */
typedef int sdt_agent_visitor(const struct sdt_agent_site *site, void *data);

/* What follows is the implementation. */

#define	SDT_AGENT_FN	static __attribute__((unused, noinline))

struct sdt_agent_image {
	uintptr_t low, high;		/* of its segments */
	uintptr_t text_low, text_high;	/* of those with code */
	uintptr_t tables, end;
	char module[64];
};

struct sdt_agent_operand {
	signed char size;		/* bytes, negative for signed; 0 for one that is not known */
	signed char base, index;	/* registers; -1 for none */
	unsigned char scale, in_memory, shift;
	int64_t number;			/* a constant, or a displacement */
};

struct sdt_agent_armed {
	struct sdt_agent_site site;
	sdt_agent_handler *handler;
	void *data;
	struct sdt_agent_operand operands[12];
	int count, stack;		/* of arguments; those from here on are on the stack */
	enum sdt_agent_way way;
	int used;			/* 0 free, 1 on, 2 off, and a thread may still be there */
	int inside;			/* threads in the handler */
	uintptr_t code;			/* the first byte that is written */
	unsigned char old[16], now[16];
	unsigned char length;		/* of old and now */
	unsigned char step;		/* a breakpoint's handler goes on there; 0: to the caller */
	unsigned char is_tail;
	unsigned char *trampoline;	/* kept for the next time; NULL for none */
};

struct sdt_agent_images {
	int count;
	struct sdt_agent_image image[SDT_AGENT_IMAGES];
};

static struct {
	int started, jumps, vectors;	/* vectors: a jump at a NOP can save them */
	struct sdt_agent_images lists[2], *list;	/* a refresh fills the one that is not current */
	struct sdt_agent_armed armed[SDT_AGENT_SITES];
	struct sigaction before;	/* of SIGTRAP */
	int handles_sigtrap;
	pid_t lock;			/* the process that works; another one's is stale, after a fork */
	int left, reason;		/* what the last sdt_agent_on has not switched on */
} sdt_agent;

/*
 * Probes in a handler do not fire, and no handler runs in itself. This is the
 * address of the handler's frame: one above it on the same stack has been left,
 * as siglongjmp does.
 */
static __thread uintptr_t sdt_agent_busy __attribute__((unused, tls_model("initial-exec")));

SDT_AGENT_FN const char *
sdt_agent_reason(int error)
{
	switch (error) {
	case SDT_AGENT_NO_SITE: return "no site matches";
	case SDT_AGENT_TAKEN: return "the site is armed already, by this or by another tracer";
	case SDT_AGENT_FORM: return "the code at the site is no disabled form";
	case SDT_AGENT_MACHINE: return "calls cannot be armed on this machine";
	case SDT_AGENT_WRITE: return "the code cannot be written: a policy forbids it";
	case SDT_AGENT_FULL: return "too many sites or images; see SDT_AGENT_SITES and SDT_AGENT_IMAGES";
	case SDT_AGENT_NOT_STARTED: return "sdt_agent_start was not called";
	case SDT_AGENT_SIGNAL: return "SIGTRAP cannot be handled, or a thread blocks it";
	case SDT_AGENT_MEMORY: return "the own memory cannot be read: a policy forbids it";
	default: return "no error";
	}
}

/*
 * Reads memory that may go away, as that of a library does: by system calls,
 * which fail where the memory is gone. Returns 0, or -1.
 */
SDT_AGENT_FN int
sdt_agent_read(void *to, uintptr_t from, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)from, n };
	int fd, saved = errno;
	long got = syscall(SYS_process_vm_readv, (long)getpid(), &local, 1L, &remote, 1L, 0L);

	if (got < 0 && (errno == ENOSYS || errno == EPERM) && (fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) >= 0) {
		got = pread(fd, to, n, (off_t)from);
		close(fd);
	}
	errno = saved;
	return (got == (long)n ? 0 : -1);
}

/* Reads a string into a buffer, cut to what fits. Returns 0, or -1 if the memory is gone. */
SDT_AGENT_FN int
sdt_agent_string(char *to, size_t size, uintptr_t from)
{
	size_t done = 0, n, i;

	to[0] = 0;
	while (done < size - 1) {
		n = 64 - ((from + done) & 63);	/* within a page */
		if (n > size - 1 - done)
			n = size - 1 - done;
		if (sdt_agent_read(to + done, from + done, n) != 0)
			return (to[0] = 0, -1);
		for (i = 0; i < n; i++)
			if (to[done + i] == 0)
				return (0);
		done += n;
	}
	to[done] = 0;
	return (0);
}

/* Makes a dash of each `__'. */
SDT_AGENT_FN void
sdt_agent_dashes(char *s)
{
	char *to = s;

	for (; *s != 0; s++)
		if (s[0] == '_' && s[1] == '_') {
			*to++ = '-';
			s++;
		} else
			*to++ = *s;
	*to = 0;
}

/* Matches a text with a part of a pattern, in which * is any text. "" matches all. */
SDT_AGENT_FN int
sdt_agent_glob(const char *part, size_t n, const char *text)
{
	const char *star = NULL, *back = NULL, *end = part + n;

	if (n == 0)
		return (1);
	for (;;)
		if (part < end && *part == '*') {
			star = ++part;
			back = text;
		} else if (part < end && *text != 0 && (*part == *text || *part == '?')) {
			part++;
			text++;
		} else if (part == end && *text == 0)
			return (1);
		else if (star != NULL && *back != 0) {
			part = star;
			text = ++back;
		} else
			return (0);
}

/* Reports whether a site matches provider:module:function:name; parts on the left may be missing. */
SDT_AGENT_FN int
sdt_agent_match(const struct sdt_agent_site *site, const char *pattern)
{
	const char *part[4] = { "", "", "", "" };
	size_t length[4] = { 0, 0, 0, 0 };
	int i, parts = 1;
	const char *p;

	for (p = pattern; *p != 0; p++)
		parts += *p == ':';
	if (parts > 4)
		return (0);
	for (i = 4 - parts, p = pattern; i < 4; i++) {
		part[i] = p;
		length[i] = strcspn(p, ":");
		p += length[i] + (p[length[i]] == ':');
	}
	if (!sdt_agent_glob(part[0], length[0], site->provider) || !sdt_agent_glob(part[1], length[1], site->module) ||
	    !sdt_agent_glob(part[3], length[3], site->name))
		return (0);
	if (!sdt_agent_glob(part[2], length[2], site->function)) {	/* without .isra.0 and its like */
		char folded[sizeof site->function];

		memcpy(folded, site->function, sizeof folded);
		folded[folded[0] != 0 ? 1 + strcspn(folded + 1, ".") : 0] = 0;
		return (sdt_agent_glob(part[2], length[2], folded));
	}
	return (1);
}

/*
 * Tables of functions, version 1 (docs/records.md, "Functions").
 */
#ifdef __powerpc64__
typedef int64_t sdt_agent_distance;
#define	SDT_AGENT_LONG	0x80
#else
typedef int32_t sdt_agent_distance;
#define	SDT_AGENT_LONG	0
#endif

struct sdt_agent_table {
	char begin[4];
	unsigned char version, records, is_test, columns;
	uint32_t size, count;
};

/* Returns the size of the table at an address below an end, 0 for none. */
SDT_AGENT_FN uint32_t
sdt_agent_table_size(uintptr_t at, uintptr_t end)
{
	struct sdt_agent_table t;
	struct { uint32_t size; char end[4]; } foot;

	if (at >= end || end - at < sizeof t + sizeof foot || sdt_agent_read(&t, at, sizeof t) != 0 ||
	    memcmp(t.begin, "sdtf", 4) != 0 || t.size < sizeof t + sizeof foot || t.size > end - at ||
	    sdt_agent_read(&foot, at + t.size - sizeof foot, sizeof foot) != 0 ||
	    foot.size != t.size || memcmp(foot.end, "ftds", 4) != 0)
		return (0);
	return (t.size);
}

/* Finds the tables that lie side by side with the one at an address of a segment. */
SDT_AGENT_FN void
sdt_agent_expand(struct sdt_agent_image *im, uintptr_t at, uintptr_t low, uintptr_t high)
{
	struct { uint32_t size; char end[4]; } foot;
	uint32_t n;

	im->tables = im->end = at;
	while ((n = sdt_agent_table_size(im->end, high)) != 0)
		im->end += n;
	while (im->end > at && im->tables - low >= sizeof foot &&
	    sdt_agent_read(&foot, im->tables - sizeof foot, sizeof foot) == 0 && memcmp(foot.end, "ftds", 4) == 0 &&
	    foot.size != 0 && foot.size <= im->tables - low && sdt_agent_table_size(im->tables - foot.size, im->tables) == foot.size)
		im->tables -= foot.size;
}

/* Sets the addresses that the segments of an image with all of flags take: from low to before high. */
SDT_AGENT_FN void
sdt_agent_bounds(const struct dl_phdr_info *info, uint32_t flags, uintptr_t *low, uintptr_t *high)
{
	int i;

	*low = UINTPTR_MAX;
	*high = 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, stop = start + p->p_memsz;

		if (p->p_type != PT_LOAD || (p->p_flags & flags) != flags || stop < start)
			continue;
		*low = start < *low ? start : *low;
		*high = stop > *high ? stop : *high;
	}
}

/* Takes in an image that has a note (dl_iterate_phdr). */
SDT_AGENT_FN int
sdt_agent_add_image(struct dl_phdr_info *info, size_t size, void *data)
{
	static const char owner[12] = "sdtconvert";
	struct sdt_agent_image im;
	const char *name = info->dlpi_name;
	uintptr_t at, first, start;
	struct sdt_agent_images *list = &sdt_agent.lists[sdt_agent.list == sdt_agent.lists];
	int i, j, full;
	(void)size;

	memset(&im, 0, sizeof im);
	sdt_agent_bounds(info, 0, &im.low, &im.high);
	sdt_agent_bounds(info, PF_X, &im.text_low, &im.text_high);
	for (i = 0; i < info->dlpi_phnum && im.tables == im.end; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint32_t head[6];

		start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_NOTE || start < im.low || start > im.high || p->p_memsz > im.high - start)
			continue;
		/* mold puts notes of two alignments into one segment, so look at each word. */
		for (at = start; at + sizeof head + sizeof(sdt_agent_distance) <= start + p->p_memsz; at += 4) {
			sdt_agent_distance d;

			if (sdt_agent_read(head, at, sizeof head) != 0)
				break;
			if (head[0] != 11 || head[1] != sizeof d || head[2] != 1 || memcmp(&head[3], owner, sizeof owner) != 0)
				continue;
			if (sdt_agent_read(&d, at + sizeof head, sizeof d) != 0)
				break;
			first = at + sizeof head + (uintptr_t)(intptr_t)d;
			for (j = 0; j < info->dlpi_phnum; j++) {
				const ElfW(Phdr) *l = &info->dlpi_phdr[j];
				uintptr_t low = info->dlpi_addr + l->p_vaddr;

				if (l->p_type == PT_LOAD && first >= low && first - low < l->p_filesz)
					sdt_agent_expand(&im, first, low, low + l->p_filesz);
			}
		}
	}
	if (im.tables == im.end)
		return (0);
	if (list->count == SDT_AGENT_IMAGES)
		return (full = SDT_AGENT_FULL, *(int *)data = full, 0);
	if (name == NULL || *name == 0) {	/* the program */
		static char path[1024];
		ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

		path[n > 0 ? n : 0] = 0;
		name = path;
	}
	if (strrchr(name, '/') != NULL)
		name = strrchr(name, '/') + 1;
	for (i = 0; name[i] != 0 && i < (int)sizeof im.module - 1; i++)
		im.module[i] = name[i];
	list->image[list->count++] = im;
	return (0);
}

/* Looks for images that have come or gone. Not for signal handlers. Returns the number of images, or a reason. */
SDT_AGENT_FN int
sdt_agent_refresh(void)
{
	struct sdt_agent_images *list = &sdt_agent.lists[sdt_agent.list == sdt_agent.lists];
	int full = 0;

	list->count = 0;
	dl_iterate_phdr(sdt_agent_add_image, &full);
	__atomic_store_n(&sdt_agent.list, list, __ATOMIC_RELEASE);
	return (full != 0 ? full : list->count);
}

/* Fills in what the probe's structures say. */
SDT_AGENT_FN void
sdt_agent_probe(struct sdt_agent_site *s, const struct sdt_agent_image *im, const struct sdt_agent_table *t, uintptr_t records, uint32_t i)
{
	uintptr_t record[2], word[9];
	int32_t distance, version;

	if (t->records == 1 && sdt_agent_read(record, records + i * sizeof record, sizeof record) != 0)
		return;
	if (t->records == 2) {
		if (sdt_agent_read(&distance, records + i * 8, sizeof distance) != 0)
			return;
		record[0] = records + i * 8 + (uintptr_t)(intptr_t)distance;
	}
	if (t->records == 3 && (sdt_agent_read(word, records + i * sizeof word[0], sizeof word[0]) != 0 ||
	    sdt_agent_read(record, word[0], sizeof record) != 0))
		return;
	s->probe = (const void *)record[0];
	/* version, provider, two lists of two words, module, function, name */
	if (record[0] == 0 || sdt_agent_read(word, record[0], sizeof word) != 0)
		return;
	memcpy(&version, word, sizeof version);
	if ((size_t)version != 12 * sizeof word[0])
		return;
	sdt_agent_string(s->name, sizeof s->name, word[8]);
	sdt_agent_string(s->module, sizeof s->module, word[6]);
	if (sdt_agent_read(record, word[1], sizeof record[0]) == 0)
		sdt_agent_string(s->provider, sizeof s->provider, record[0]);
	sdt_agent_dashes(s->provider);
	sdt_agent_dashes(s->name);
	if (s->module[0] == 0)
		memcpy(s->module, im->module, sizeof s->module);
}

/* Reads a list of strings that an empty one ends. */
SDT_AGENT_FN void
sdt_agent_types(struct sdt_agent_site *s, uintptr_t from, uintptr_t end)
{
	char type[64];
	size_t used = 0, n;

	while (from < end && sdt_agent_string(type, sizeof type, from) == 0 && (n = strlen(type)) != 0 && used + n + 3 < sizeof s->types) {
		if (used != 0) {
			memcpy(s->types + used, "; ", 2);
			used += 2;
		}
		memcpy(s->types + used, type, n + 1);
		used += n;
		from += n + 1;
	}
}

/* Reads row i of a table. Returns 0, or -1 for one that makes no sense. */
SDT_AGENT_FN int
sdt_agent_row(struct sdt_agent_site *s, const struct sdt_agent_image *im, const struct sdt_agent_table *t, uintptr_t table, uint32_t i)
{
	const size_t d = sizeof(sdt_agent_distance);
	const int has_semaphore = t->columns & 1, has_operands = t->columns >> 1 & 1, has_types = t->columns >> 2 & 1;
	const size_t size = d + 4 + (has_semaphore ? d : 0) + (has_operands ? 4 : 0) + (has_types ? 4 : 0);
	uintptr_t at = table + sizeof *t + d + i * size, end = table + t->size - 8, start;
	sdt_agent_distance distance;
	uint32_t offset[3] = { 0, 0, 0 };

	memset(s, 0, sizeof *s);
	if (t->count > (t->size - sizeof *t - 8) / size || sdt_agent_read(&distance, at, d) != 0)
		return (-1);
	s->address = at + (uintptr_t)(intptr_t)distance;
	s->is_test = t->is_test;
	if (s->address < im->text_low || s->address >= im->text_high)
		return (-1);
	at += d;
	if (has_semaphore) {
		if (sdt_agent_read(&distance, at, d) != 0)
			return (-1);
		start = at + (uintptr_t)(intptr_t)distance;
		if (distance != 0 && start >= im->low && im->high - start >= 2 && start < im->high)
			s->semaphore = (uint16_t *)start;
		at += d;
	}
	if (sdt_agent_read(offset, at, (size_t)(4 + 4 * has_operands + 4 * has_types)) != 0)
		return (-1);
	if (offset[0] != 0 && offset[0] < t->size - 8 && table + offset[0] + d < end &&
	    sdt_agent_read(&distance, table + offset[0], d) == 0) {
		start = table + offset[0] + (uintptr_t)(intptr_t)distance;
		if (start >= im->text_low && start <= s->address) {
			s->offset = s->address - start;
			sdt_agent_string(s->function, sizeof s->function, table + offset[0] + d);
		}
	}
	if (has_operands && offset[1] != 0 && offset[1] < t->size - 8) {
		s->is_nop = 1;
		sdt_agent_string(s->operands, sizeof s->operands, table + offset[1]);
		if (strlen(s->operands) == sizeof s->operands - 1)
			s->operands[0] = 0;	/* cut off somewhere */
	}
	if (has_types && offset[1 + has_operands] != 0 && offset[1 + has_operands] < t->size - 8)
		sdt_agent_types(s, table + offset[1 + has_operands], end);
	if (t->records != 0 && t->records <= 3) {
		if (sdt_agent_read(&distance, table + sizeof *t, d) != 0)
			return (-1);
		sdt_agent_probe(s, im, t, table + sizeof *t + (uintptr_t)(intptr_t)distance, i);
	}
	return (0);
}

/*
 * Calls a visitor with each site that matches, all if pattern is "". Returns
 * the number of sites, or what the visitor has returned if that is not 0.
 */
SDT_AGENT_FN int
sdt_agent_each(const char *pattern, sdt_agent_visitor *visit, void *data)
{
	struct sdt_agent_site site;
	struct sdt_agent_table t;
	const struct sdt_agent_images *list = __atomic_load_n(&sdt_agent.list, __ATOMIC_ACQUIRE);
	int i, seen = 0, stop;
	uintptr_t at;
	uint32_t row, size;

	if (!sdt_agent.started)
		return (SDT_AGENT_NOT_STARTED);
	for (i = 0; i < list->count; i++) {
		const struct sdt_agent_image im = list->image[i];

		for (at = im.tables; at < im.end; at += size) {
			if ((size = sdt_agent_table_size(at, im.end)) == 0 || sdt_agent_read(&t, at, sizeof t) != 0)
				break;		/* the image is gone */
			if (t.version != 1 || (t.columns & ~7) != SDT_AGENT_LONG || t.size != size)
				continue;
			for (row = 0; row < t.count; row++) {
				if (sdt_agent_row(&site, &im, &t, at, row) != 0)
					break;
				if (*pattern != 0 && !sdt_agent_match(&site, pattern))
					continue;
				seen++;
				if ((stop = visit(&site, data)) != 0)
					return (stop);
			}
		}
	}
	return (seen);
}

struct sdt_agent_wanted {
	uintptr_t address;
	struct sdt_agent_site *to;
};

SDT_AGENT_FN int
sdt_agent_is_at(const struct sdt_agent_site *site, void *data)
{
	struct sdt_agent_wanted *w = (struct sdt_agent_wanted *)data;

	if (site->address != w->address)
		return (0);
	*w->to = *site;
	return (1);
}

/* Finds the site at an address. Returns 0, or a reason. */
SDT_AGENT_FN int
sdt_agent_at(uintptr_t address, struct sdt_agent_site *site)
{
	struct sdt_agent_wanted w = { address, site };
	int got = sdt_agent_each("", sdt_agent_is_at, &w);

	return (got == 1 && site->address == address ? 0 : got < 0 ? got : SDT_AGENT_NO_SITE);
}

/*
 * Switching.
 */

/* Registers as the trampolines push them and as operands number them. */
#if defined(__x86_64__)
#define	SDT_AGENT_REGS	16	/* rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15, as instructions number them */
#define	SDT_AGENT_SP	4
#elif defined(__aarch64__)
#define	SDT_AGENT_REGS	32	/* x0 ... x30, sp */
#define	SDT_AGENT_SP	31
#endif

#ifdef SDT_AGENT_REGS
struct sdt_agent_regs { uintptr_t r[SDT_AGENT_REGS]; };

static const unsigned char sdt_agent_call_regs[] =
#if defined(__x86_64__)
    { 7, 6, 2, 1, 8, 9 };
#else
    { 0, 1, 2, 3, 4, 5, 6, 7 };
#endif

/* Parses a register's name. Returns its number, and its size and bit offset; -1 for none. */
SDT_AGENT_FN int
sdt_agent_register(const char **text, unsigned char *shift)
{
	const char *p = *text;
	int i, n;
#if defined(__x86_64__)
	static const char names[16][4] = { "ax", "cx", "dx", "bx", "sp", "bp", "si", "di" };

	*shift = 0;
	if (*p++ != '%')
		return (-1);
	if (*p == 'r' && p[1] >= '0' && p[1] <= '9') {
		for (n = 0, p++; *p >= '0' && *p <= '9'; p++)
			n = n * 10 + *p - '0';
		if (n < 8 || n > 15)
			return (-1);
		p += *p == 'd' || *p == 'w' || *p == 'b';
		return (*text = p, n);
	}
	if ((*p == 'r' || *p == 'e') && p[1] != 0 && p[2] != 0)
		p++;
	for (i = 0; i < 8; i++)
		if (p[0] == names[i][0] && p[1] == names[i][1]) {
			p += 2;
			p += *p == 'l' && i >= 4;	/* %sil */
			return (*text = p, i);
		}
	for (i = 0; i < 4; i++)				/* %al, %ah */
		if (p[0] == names[i][0] && (p[1] == 'l' || p[1] == 'h')) {
			*shift = p[1] == 'h' ? 8 : 0;
			return (*text = p + 2, i);
		}
	return (-1);
#else
	(void)i;
	*shift = 0;
	if (p[0] == 's' && p[1] == 'p')
		return (*text = p + 2, SDT_AGENT_SP);
	if ((*p != 'x' && *p != 'w') || p[1] < '0' || p[1] > '9')
		return (-1);
	for (n = 0, p++; *p >= '0' && *p <= '9'; p++)
		n = n * 10 + *p - '0';
	return (n > 30 ? -1 : (*text = p, n));
#endif
}

SDT_AGENT_FN int64_t
sdt_agent_number(const char **text, int *found)
{
	const char *p = *text;
	int negative = *p == '-', base = 10, digit;
	uint64_t n = 0;

	p += negative || *p == '+';
	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		base = 16;
		p += 2;
	}
	*found = 0;
	for (;; p++, *found = 1) {
		digit = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : 16;
		if (digit >= base)
			break;
		n = n * (unsigned)base + (unsigned)digit;
	}
	if (*found)
		*text = p;
	return (negative ? -(int64_t)n : (int64_t)n);
}

/* Parses one operand, behind its size. Leaves the size 0 if it is not known. */
SDT_AGENT_FN void
sdt_agent_parse_operand(struct sdt_agent_operand *o, const char *p, int size)
{
	int found = 0, n;
	unsigned char shift;

	o->base = o->index = -1;
	o->scale = 1;
#if defined(__x86_64__)
	if (*p == '$') {
		p++;
		o->number = sdt_agent_number(&p, &found);
		n = found;
	} else if (*p == '%') {
		n = (o->base = (signed char)sdt_agent_register(&p, &o->shift)) >= 0;
	} else {
		o->number = sdt_agent_number(&p, &found);
		o->in_memory = 1;
		n = *p++ == '(';
		if (n && *p == '%')
			n = (o->base = (signed char)sdt_agent_register(&p, &shift)) >= 0;
		if (n && *p == ',') {
			p++;
			n = (o->index = (signed char)sdt_agent_register(&p, &shift)) >= 0;
			if (n && *p == ',') {
				p++;
				o->scale = (unsigned char)sdt_agent_number(&p, &found);
			}
		}
		n = n && *p++ == ')';
	}
#else
	if (*p == '[') {
		p++;
		o->in_memory = 1;
		n = (o->base = (signed char)sdt_agent_register(&p, &shift)) >= 0;
		if (n && *p == ',') {
			for (p++; *p == ' ' || *p == '#'; p++)
				;
			if (*p == 'x')
				n = (o->index = (signed char)sdt_agent_register(&p, &shift)) >= 0;
			else
				o->number = sdt_agent_number(&p, &found);
		}
		n = n && *p++ == ']';
	} else if ((n = sdt_agent_register(&p, &shift)) >= 0) {
		o->base = (signed char)n;
		n = 1;
	} else {
		o->number = sdt_agent_number(&p, &found);
		n = found;
	}
#endif
	if (n && (*p == 0 || *p == ' ') && (size == 1 || size == 2 || size == 4 || size == 8 || size == -1 || size == -2 || size == -4 || size == -8))
		o->size = (signed char)size;
}

/* Says where the arguments of a site are. */
SDT_AGENT_FN void
sdt_agent_arguments(struct sdt_agent_armed *a)
{
	const char *p = a->site.operands, *type = a->site.types;
	const int registers = (int)sizeof sdt_agent_call_regs;
	int i, size, found;

	memset(a->operands, 0, sizeof a->operands);
	a->count = 0;
	a->stack = 12;
	if (!a->site.is_nop && a->site.types[0] == 0)
		a->count = registers;
	for (; !a->site.is_nop && *type != 0 && a->count < 12; a->count++) {
		const char *end = strstr(type, "; ");

		type = end != NULL ? end + 2 : type + strlen(type);
	}
	for (i = 0; !a->site.is_nop && i < a->count && i < registers; i++) {
		a->operands[i].base = (signed char)sdt_agent_call_regs[i];
		a->operands[i].index = -1;
		a->operands[i].size = (signed char)sizeof(uintptr_t);
	}
	if (!a->site.is_nop) {
		a->stack = registers;
		return;
	}
	while (*p != 0 && a->count < 12) {
		size = (int)sdt_agent_number(&p, &found);
		if (!found || *p != '@')
			break;
		sdt_agent_parse_operand(&a->operands[a->count++], p + 1, size);
		/* Arm's operands have spaces in brackets. */
		for (found = 0; *p != 0 && (*p != ' ' || found); p++)
			found += (*p == '[') - (*p == ']');
		p += *p == ' ';
	}
}

/* Reads the arguments, and calls the handler. */
SDT_AGENT_FN void
sdt_agent_fire(struct sdt_agent_armed *a, const struct sdt_agent_regs *regs)
{
	struct sdt_agent_hit hit;
	int i, saved = errno;
	uintptr_t frame = (uintptr_t)&hit, distance = frame - sdt_agent_busy;

	if (sdt_agent_busy != 0 && distance >= (uintptr_t)1 << 20)
		return;
	__atomic_add_fetch(&a->inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&a->used, __ATOMIC_SEQ_CST) != 1) {
		__atomic_sub_fetch(&a->inside, 1, __ATOMIC_SEQ_CST);
		return;
	}
	sdt_agent_busy = frame;
	hit.site = &a->site;
	hit.count = a->count;
	hit.known = 0;
	for (i = 0; i < a->count; i++) {
		const struct sdt_agent_operand *o = &a->operands[i];
		uint64_t v = (uint64_t)o->number;
		int bits;

		hit.args[i] = 0;
		if (i >= a->stack) {
			v = *(const uintptr_t *)(regs->r[SDT_AGENT_SP] + sizeof(uintptr_t) *
			    ((unsigned)(i - a->stack) + (sizeof sdt_agent_call_regs == 6 && a->is_tail)));
			bits = 64;
		} else if (o->size == 0)
			continue;
		else {
			bits = 8 * (o->size < 0 ? -o->size : o->size);
			if (o->base >= 0)
				v += regs->r[o->base];
			if (o->index >= 0)
				v += regs->r[o->index] * o->scale;
			if (o->in_memory) {
				uint64_t cell = 0;

				memcpy(&cell, (const void *)(uintptr_t)v, (size_t)bits / 8);
				v = cell;
			}
			v >>= o->shift;
		}
		if (bits < 64)
			v = o->size < 0 ? (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits)) : v & (((uint64_t)1 << bits) - 1);
		hit.args[i] = (uintptr_t)v;
		hit.known |= 1u << i;
	}
	a->handler(&hit, a->data);
	sdt_agent_busy = 0;
	__atomic_sub_fetch(&a->inside, 1, __ATOMIC_SEQ_CST);
	errno = saved;
}

/*
 * Code, amd64. A jump takes the place of one instruction, so no thread is ever in the middle of it. It goes to a trampoline of
 * the site's own, which calls what its pool begins with, and jumps back.
 */
struct sdt_agent_pool {
	unsigned char *write, *run;	/* the same memory, twice */
	int used;			/* trampolines */
	pid_t pid;			/* a child after a fork makes pools of its own */
};
#define	SDT_AGENT_POOLS		16
#define	SDT_AGENT_POOL_SIZE	65536
#define	SDT_AGENT_SLOT		64	/* bytes of a trampoline */
#define	SDT_AGENT_FIRST_SLOT	12	/* what is before it is what trampolines call */
static struct sdt_agent_pool sdt_agent_pools[SDT_AGENT_POOLS];

#if defined(__x86_64__)
#define	SDT_AGENT_REACH		0x7ff00000L
/* Pushed by what trampolines call, from below: r15 ... r8, rdi, rsi, rbp, rbx, rdx, rcx, two return addresses' place, rax. */
static __attribute__((unused, used, noinline)) void
sdt_agent_hit_jump(const uintptr_t *pushed, struct sdt_agent_armed *a)
{
	static const unsigned char from[16] = { 15, 13, 12, 11, 0, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 };
	struct sdt_agent_regs regs;
	int i;

	for (i = 0; i < 16; i++)
		regs.r[i] = pushed[from[i]];
	regs.r[SDT_AGENT_SP] = (uintptr_t)(pushed + 16) + 128;
	sdt_agent_fire(a, &regs);
}

static const unsigned char sdt_agent_enter[] = {
	0x51, 0x52, 0x53, 0x55, 0x56, 0x57,			/* push %rcx, %rdx, %rbx, %rbp, %rsi, %rdi */
	0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53,		/* push %r8 ... %r11 */
	0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57,		/* push %r12 ... %r15 */
	0x48, 0x89, 0xe5,					/* mov %rsp,%rbp */
	0x48, 0x89, 0xc6,					/* mov %rax,%rsi */
	0x48, 0x89, 0xe7,					/* mov %rsp,%rdi */
	0x48, 0x81, 0xec, 0xc0, 0x0a, 0x00, 0x00,		/* sub $2752,%rsp */
	0x48, 0x83, 0xe4, 0xc0,					/* and $-64,%rsp */
};
/* At a NOP from the start the compiler may keep values in vector registers: save what AVX-512 and its forerunners have. */
static const unsigned char sdt_agent_save[] = {
	0x31, 0xc0,						/* xor %eax,%eax */
	0x48, 0x89, 0x84, 0x24, 0x00, 0x02, 0x00, 0x00,		/* mov %rax,512(%rsp): the header of the area has to be zero */
	0x48, 0x89, 0x84, 0x24, 0x08, 0x02, 0x00, 0x00,		/* mov %rax,520(%rsp) */
	0x48, 0x89, 0x84, 0x24, 0x10, 0x02, 0x00, 0x00,		/* mov %rax,528(%rsp) */
	0x48, 0x89, 0x84, 0x24, 0x18, 0x02, 0x00, 0x00,		/* mov %rax,536(%rsp) */
	0x48, 0x89, 0x84, 0x24, 0x20, 0x02, 0x00, 0x00,		/* mov %rax,544(%rsp) */
	0x48, 0x89, 0x84, 0x24, 0x28, 0x02, 0x00, 0x00,		/* mov %rax,552(%rsp) */
	0x48, 0x89, 0x84, 0x24, 0x30, 0x02, 0x00, 0x00,		/* mov %rax,560(%rsp) */
	0x48, 0x89, 0x84, 0x24, 0x38, 0x02, 0x00, 0x00,		/* mov %rax,568(%rsp) */
	0xb8, 0xe7, 0x00, 0x00, 0x00,				/* mov $0xe7,%eax: x87, SSE, AVX, AVX-512 */
	0x31, 0xd2,						/* xor %edx,%edx */
	0x48, 0x0f, 0xae, 0x24, 0x24,				/* xsave64 (%rsp) */
	0xdb, 0xe3,						/* fninit */
};
static const unsigned char sdt_agent_restore[] = {
	0xb8, 0xe7, 0x00, 0x00, 0x00,				/* mov $0xe7,%eax */
	0x31, 0xd2,						/* xor %edx,%edx */
	0x48, 0x0f, 0xae, 0x2c, 0x24,				/* xrstor64 (%rsp) */
};
static const unsigned char sdt_agent_leave[] = {
	0x48, 0x89, 0xec,					/* mov %rbp,%rsp */
	0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c,		/* pop %r15 ... %r12 */
	0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58,		/* pop %r11 ... %r8 */
	0x5f, 0x5e, 0x5d, 0x5b, 0x5a, 0x59,			/* pop %rdi, %rsi, %rbp, %rbx, %rdx, %rcx */
	0xc3,							/* ret */
};
#define	SDT_AGENT_CALL_ENTRY	256	/* where in a pool is what the trampolines of calls call */

/* Writes what trampolines call, and returns what is behind it. */
SDT_AGENT_FN void
sdt_agent_enter_at(unsigned char *p, int saves)
{
	static const unsigned char call[] = { 0x48, 0xb8 }, through[] = { 0xff, 0xd0 };	/* mov $entry,%rax; call *%rax */
	uintptr_t entry = (uintptr_t)sdt_agent_hit_jump;
#define	SDT_AGENT_PUT(code)	(memcpy(p, code, sizeof code), p += sizeof code)
	SDT_AGENT_PUT(sdt_agent_enter);
	if (saves)
		SDT_AGENT_PUT(sdt_agent_save);
	SDT_AGENT_PUT(call);
	memcpy(p, &entry, sizeof entry);
	p += sizeof entry;
	SDT_AGENT_PUT(through);
	if (saves)
		SDT_AGENT_PUT(sdt_agent_restore);
	SDT_AGENT_PUT(sdt_agent_leave);
}

SDT_AGENT_FN void
sdt_agent_fill_pool(unsigned char *write)
{
	sdt_agent_enter_at(write, 1);
	sdt_agent_enter_at(write + SDT_AGENT_CALL_ENTRY, 0);
}

SDT_AGENT_FN void
sdt_agent_fill_slot(unsigned char *write, const unsigned char *run, const struct sdt_agent_pool *pool, struct sdt_agent_armed *a)
{
	static const unsigned char begin[] = {
		0x48, 0x8d, 0x64, 0x24, 0x80,			/* lea -128(%rsp),%rsp: below the red zone */
		0x50,						/* push %rax */
		0x48, 0xb8,					/* mov $a,%rax */
	}, end[] = {
		0x58,						/* pop %rax */
		0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00,	/* lea 128(%rsp),%rsp */
	};
	const unsigned char *to = pool->run + (a->site.is_nop ? 0 : SDT_AGENT_CALL_ENTRY);
	unsigned char *p = write;
	int32_t distance;

	SDT_AGENT_PUT(begin);
	memcpy(p, &a, sizeof a);
	p += sizeof a;
	distance = (int32_t)(to - (run + (p - write) + 5));
	*p++ = 0xe8;						/* call */
	memcpy(p, &distance, 4);
	p += 4;
	SDT_AGENT_PUT(end);
	distance = (int32_t)((intptr_t)(a->code + a->length) - (intptr_t)(run + (p - write) + 5));
	*p++ = 0xe9;						/* jmp behind the site */
	memcpy(p, &distance, 4);
}

/* Finds out how a site is armed. Returns 0, or a reason. */
SDT_AGENT_FN int
sdt_agent_form(struct sdt_agent_armed *a, const unsigned char *code)
{
	static const unsigned char nop10[] = { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 }, nop6[] = { 0x66, 0x0f, 0x1f, 0x44, 0, 0 };
	const struct sdt_form *f;

	a->way = SDT_AGENT_BY_JUMP;
	a->code = a->site.address;
	if (code[0] == 0x90 && memcmp(code + 1, nop10, sizeof nop10) == 0) {
		a->code++;
		a->length = sizeof nop10;
	} else if (memcmp(code, nop6 + 1, 5) == 0)
		a->length = 5;
	else if (memcmp(code, nop6, 6) == 0)
		a->length = 6;
	else
		a->way = SDT_AGENT_BY_BREAKPOINT;
	if (code[0] == 0xcc || ((code[0] == 0xe8 || code[0] == 0xe9) && !a->site.is_test) || (code[0] == 0x90 && (code[1] == 0xcc || code[1] == 0xe8 || code[1] == 0xe9 ||
	    (code[1] == 0x48 && code[2] == 0x8d))))
		return (SDT_AGENT_TAKEN);
	if ((f = sdt_form(code, a->site.is_test)) == NULL)
		return (SDT_AGENT_FORM);
	a->is_tail = f->tail;
	a->step = f->step;
	return (0);
}

#else /* arm64 */
#define	SDT_AGENT_REACH		0x7f00000L
static __attribute__((unused, used, noinline)) void
sdt_agent_hit_jump(const uintptr_t *pushed, struct sdt_agent_armed *a)
{
	const uintptr_t *trampoline = pushed + 102;	/* x16, x17, x30 */
	struct sdt_agent_regs regs;

	memcpy(regs.r, pushed, sizeof regs.r);
	regs.r[16] = trampoline[0];
	regs.r[17] = trampoline[1];
	regs.r[30] = trampoline[2];
	regs.r[SDT_AGENT_SP] = (uintptr_t)(trampoline + 4);
	sdt_agent_fire(a, &regs);
}

/* Saves all registers, for operands of NOPs and because compilers may keep values in vectors there. */
static const uint32_t sdt_agent_enter[] = {
	0xd10cc3ff,	/* sub sp, sp, #0x330 */
	0xa90007e0,	/* stp x0, x1, [sp] */
	0xa9010fe2,	/* stp x2, x3, [sp, #16] */
	0xa90217e4,	/* stp x4, x5, [sp, #32] */
	0xa9031fe6,	/* stp x6, x7, [sp, #48] */
	0xa90427e8,	/* stp x8, x9, [sp, #64] */
	0xa9052fea,	/* stp x10, x11, [sp, #80] */
	0xa90637ec,	/* stp x12, x13, [sp, #96] */
	0xa9073fee,	/* stp x14, x15, [sp, #112] */
	0xa9094ff2,	/* stp x18, x19, [sp, #144] */
	0xa90a57f4,	/* stp x20, x21, [sp, #160] */
	0xa90b5ff6,	/* stp x22, x23, [sp, #176] */
	0xa90c67f8,	/* stp x24, x25, [sp, #192] */
	0xa90d6ffa,	/* stp x26, x27, [sp, #208] */
	0xa90e77fc,	/* stp x28, x29, [sp, #224] */
	0xd53b4209,	/* mrs x9, nzcv */
	0xd53b442a,	/* mrs x10, fpsr */
	0xa91027fe,	/* stp x30, x9, [sp, #256] */
	0xf9008bea,	/* str x10, [sp, #272] */
	0x910483eb,	/* add x11, sp, #0x120 */
	0xad000560,	/* stp q0, q1, [x11] */
	0xad010d62,	/* stp q2, q3, [x11, #32] */
	0xad021564,	/* stp q4, q5, [x11, #64] */
	0xad031d66,	/* stp q6, q7, [x11, #96] */
	0xad042568,	/* stp q8, q9, [x11, #128] */
	0xad052d6a,	/* stp q10, q11, [x11, #160] */
	0xad06356c,	/* stp q12, q13, [x11, #192] */
	0xad073d6e,	/* stp q14, q15, [x11, #224] */
	0xad084570,	/* stp q16, q17, [x11, #256] */
	0xad094d72,	/* stp q18, q19, [x11, #288] */
	0xad0a5574,	/* stp q20, q21, [x11, #320] */
	0xad0b5d76,	/* stp q22, q23, [x11, #352] */
	0xad0c6578,	/* stp q24, q25, [x11, #384] */
	0xad0d6d7a,	/* stp q26, q27, [x11, #416] */
	0xad0e757c,	/* stp q28, q29, [x11, #448] */
	0xad0f7d7e,	/* stp q30, q31, [x11, #480] */
	0x910003e0,	/* mov x0, sp */
	0xaa1003e1,	/* mov x1, x16 */
	0x58000471,	/* ldr x17, 154 <common+0x124> */
	0xd63f0220,	/* blr x17 */
	0x910483eb,	/* add x11, sp, #0x120 */
	0xad400560,	/* ldp q0, q1, [x11] */
	0xad410d62,	/* ldp q2, q3, [x11, #32] */
	0xad421564,	/* ldp q4, q5, [x11, #64] */
	0xad431d66,	/* ldp q6, q7, [x11, #96] */
	0xad442568,	/* ldp q8, q9, [x11, #128] */
	0xad452d6a,	/* ldp q10, q11, [x11, #160] */
	0xad46356c,	/* ldp q12, q13, [x11, #192] */
	0xad473d6e,	/* ldp q14, q15, [x11, #224] */
	0xad484570,	/* ldp q16, q17, [x11, #256] */
	0xad494d72,	/* ldp q18, q19, [x11, #288] */
	0xad4a5574,	/* ldp q20, q21, [x11, #320] */
	0xad4b5d76,	/* ldp q22, q23, [x11, #352] */
	0xad4c6578,	/* ldp q24, q25, [x11, #384] */
	0xad4d6d7a,	/* ldp q26, q27, [x11, #416] */
	0xad4e757c,	/* ldp q28, q29, [x11, #448] */
	0xad4f7d7e,	/* ldp q30, q31, [x11, #480] */
	0xa95027fe,	/* ldp x30, x9, [sp, #256] */
	0xf9408bea,	/* ldr x10, [sp, #272] */
	0xd51b4209,	/* msr nzcv, x9 */
	0xd51b442a,	/* msr fpsr, x10 */
	0xa94007e0,	/* ldp x0, x1, [sp] */
	0xa9410fe2,	/* ldp x2, x3, [sp, #16] */
	0xa94217e4,	/* ldp x4, x5, [sp, #32] */
	0xa9431fe6,	/* ldp x6, x7, [sp, #48] */
	0xa94427e8,	/* ldp x8, x9, [sp, #64] */
	0xa9452fea,	/* ldp x10, x11, [sp, #80] */
	0xa94637ec,	/* ldp x12, x13, [sp, #96] */
	0xa9473fee,	/* ldp x14, x15, [sp, #112] */
	0xf9404bf2,	/* ldr x18, [sp, #144] */
	0x910cc3ff,	/* add sp, sp, #0x330 */
	0xd65f03c0,	/* ret */
	0xd503201f,	/* nop */
};

SDT_AGENT_FN void
sdt_agent_fill_pool(unsigned char *write)
{
	uintptr_t entry = (uintptr_t)sdt_agent_hit_jump;

	memcpy(write, sdt_agent_enter, sizeof sdt_agent_enter);
	memcpy(write + sizeof sdt_agent_enter, &entry, sizeof entry);
}

SDT_AGENT_FN void
sdt_agent_fill_slot(unsigned char *write, const unsigned char *run, const struct sdt_agent_pool *pool, struct sdt_agent_armed *a)
{
	static const uint32_t code[] = {
		0xa9be47f0,	/* stp x16, x17, [sp, #-32]! */
		0xf9000bfe,	/* str x30, [sp, #16] */
		0x580000d0,	/* ldr x16, a */
		0x580000f1,	/* ldr x17, the pool's beginning */
		0xd63f0220,	/* blr x17 */
		0xf9400bfe,	/* ldr x30, [sp, #16] */
		0xa8c247f0,	/* ldp x16, x17, [sp], #32 */
	};
	uint32_t b = 0x14000000 | (uint32_t)(((intptr_t)(a->code + 4) - (intptr_t)(run + sizeof code)) >> 2 & 0x3ffffff);
	const void *data[2] = { a, pool->run };

	memcpy(write, code, sizeof code);
	memcpy(write + sizeof code, &b, sizeof b);	/* b behind the site */
	memcpy(write + sizeof code + sizeof b, data, sizeof data);
}

SDT_AGENT_FN int
sdt_agent_form(struct sdt_agent_armed *a, const unsigned char *code)
{
	static const unsigned char nop[] = { 0x1f, 0x20, 0x03, 0xd5 };
	const struct sdt_form *f;

	a->code = a->site.address;
	a->length = 4;
	a->way = memcmp(code, nop, sizeof nop) == 0 ? SDT_AGENT_BY_JUMP : SDT_AGENT_BY_BREAKPOINT;
	if (code[3] == 0xd4 || (!a->site.is_test && (code[3] & 0x7c) == 0x14))	/* brk; b or bl */
		return (SDT_AGENT_TAKEN);
	if ((f = sdt_form(code, a->site.is_test)) == NULL)
		return (SDT_AGENT_FORM);
	a->is_tail = f->tail;
	a->step = f->step;
	return (0);
}
#endif

SDT_AGENT_FN void
sdt_agent_synchronise(void)
{
	syscall(SYS_membarrier, 1L << 5, 0L, 0L);	/* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
}

/* Writes code, at most a word at a time where other threads may run it. Returns 0, or a reason. */
SDT_AGENT_FN int
sdt_agent_write(uintptr_t to, const void *from, size_t n)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = to & -page, size = (to + n - start + page - 1) & -page;
	long done = -1;
#ifndef SDT_AGENT_MPROTECT	/* an emulator does not see that the file of a memory changes code */
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		done = pwrite(fd, from, n, (off_t)to);
		close(fd);
	}
#endif
	if (done == (long)n)
		return (0);
	if (mprotect((void *)start, size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		return (SDT_AGENT_WRITE);
	if (n == 4 && (to & 3) == 0) {
		uint32_t word;

		memcpy(&word, from, 4);
		__atomic_store_n((uint32_t *)to, word, __ATOMIC_RELEASE);
	} else
		memcpy((void *)to, from, n);
	__builtin___clear_cache((char *)to, (char *)to + n);
	mprotect((void *)start, size, PROT_READ | PROT_EXEC);
	return (0);
}

/* Maps a pool where a jump from an address reaches it. */
SDT_AGENT_FN struct sdt_agent_pool *
sdt_agent_new_pool(struct sdt_agent_pool *pool, uintptr_t near)
{
	const long step = SDT_AGENT_REACH / 64;
	uintptr_t at;
	long i;
	int fd = (int)syscall(SYS_memfd_create, "sdt_agent", 1L /* MFD_CLOEXEC */);
	void *run = MAP_FAILED, *write = MAP_FAILED;

	if (fd < 0)
		return (NULL);
	if (ftruncate(fd, SDT_AGENT_POOL_SIZE) == 0)
		write = mmap(NULL, SDT_AGENT_POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (i = 1; i < 120 && run == MAP_FAILED && write != MAP_FAILED; i++) {
		at = near + (uintptr_t)((i & 1 ? -1 : 1) * (i / 2 + 1) * step);
		at &= -(uintptr_t)SDT_AGENT_POOL_SIZE;
		if ((i & 1 ? at > near : at < near) || at < SDT_AGENT_POOL_SIZE)
			continue;
		run = mmap((void *)at, SDT_AGENT_POOL_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED | 0x100000 /* MAP_FIXED_NOREPLACE */, fd, 0);
		if (run != MAP_FAILED && run != (void *)at) {
			munmap(run, SDT_AGENT_POOL_SIZE);
			run = MAP_FAILED;
		}
	}
	close(fd);
	if (run == MAP_FAILED) {
		if (write != MAP_FAILED)
			munmap(write, SDT_AGENT_POOL_SIZE);
		return (NULL);
	}
	pool->run = (unsigned char *)run;
	pool->write = (unsigned char *)write;
	pool->used = SDT_AGENT_FIRST_SLOT;
	pool->pid = getpid();
	sdt_agent_fill_pool(pool->write);
	__builtin___clear_cache((char *)run, (char *)run + SDT_AGENT_POOL_SIZE);
	return (pool);
}

/* Gives a site a trampoline, or makes it one of breakpoints. */
SDT_AGENT_FN void
sdt_agent_trampoline(struct sdt_agent_armed *a)
{
	struct sdt_agent_pool *pool = NULL;
	unsigned char *write;
	int i;

	if (a->way != SDT_AGENT_BY_JUMP)
		return;
	for (i = 0; i < SDT_AGENT_POOLS && pool == NULL && a->trampoline != NULL; i++) {
		struct sdt_agent_pool *p = &sdt_agent_pools[i];
		intptr_t far = (intptr_t)((uintptr_t)p->run - a->code);

		if (p->run != NULL && p->pid == getpid() && a->trampoline >= p->run && a->trampoline < p->run + SDT_AGENT_POOL_SIZE &&
		    far < SDT_AGENT_REACH && far > -SDT_AGENT_REACH)
			pool = p;
	}
	if (pool == NULL)
		a->trampoline = NULL;
	for (i = 0; i < SDT_AGENT_POOLS && pool == NULL && sdt_agent.jumps && (sdt_agent.vectors || !a->site.is_nop); i++) {
		struct sdt_agent_pool *p = &sdt_agent_pools[i];
		intptr_t far = (intptr_t)((uintptr_t)p->run - a->code);

		if (p->run == NULL)
			pool = sdt_agent_new_pool(p, a->code);
		else if (p->pid == getpid() && far < SDT_AGENT_REACH && far > -SDT_AGENT_REACH && (p->used + 1) * SDT_AGENT_SLOT <= SDT_AGENT_POOL_SIZE)
			pool = p;
		if (p->run == NULL)
			break;		/* no room is near */
	}
	if (pool == NULL) {
		a->way = SDT_AGENT_BY_BREAKPOINT;
		a->code = a->site.address;
		return;
	}
	if (a->trampoline == NULL)
		a->trampoline = pool->run + pool->used++ * SDT_AGENT_SLOT;
	write = pool->write + (a->trampoline - pool->run);
	sdt_agent_fill_slot(write, a->trampoline, pool, a);
	__builtin___clear_cache((char *)a->trampoline, (char *)a->trampoline + SDT_AGENT_SLOT);
}

#if defined(__x86_64__)
static const unsigned char sdt_agent_trap[1] = { 0xcc };	/* int3 */
#else
static const unsigned char sdt_agent_trap[4] = { 0x00, 0x00, 0x20, 0xd4 };	/* brk #0 */
#endif

/* Replaces the code of a site, which other threads may be running. Returns 0, or a reason. */
SDT_AGENT_FN int
sdt_agent_replace(const struct sdt_agent_armed *a, const unsigned char *code)
{
	size_t n = a->way == SDT_AGENT_BY_BREAKPOINT ? sizeof sdt_agent_trap : a->length;
	int error;

	if (n > sizeof sdt_agent_trap) {	/* a thread that meets the breakpoint goes on behind the site */
		if ((error = sdt_agent_write(a->code, sdt_agent_trap, sizeof sdt_agent_trap)) != 0)
			return (error);
		sdt_agent_synchronise();
		if ((error = sdt_agent_write(a->code + sizeof sdt_agent_trap, code + sizeof sdt_agent_trap, n - sizeof sdt_agent_trap)) != 0)
			return (error);
		sdt_agent_synchronise();
		n = sizeof sdt_agent_trap;
	}
	error = sdt_agent_write(a->code, code, n);
	sdt_agent_synchronise();
	return (error);
}

/* Gives a SIGTRAP to whoever was there before. */
SDT_AGENT_FN void
sdt_agent_pass_on(int signal, siginfo_t *info, void *context)
{
	struct sigaction fatal;

	if (sdt_agent.before.sa_flags & SA_SIGINFO)
		sdt_agent.before.sa_sigaction(signal, info, context);
	else if (sdt_agent.before.sa_handler != SIG_DFL && sdt_agent.before.sa_handler != SIG_IGN)
		sdt_agent.before.sa_handler(signal);
	else if (sdt_agent.before.sa_handler == SIG_DFL || info->si_code > 0) {	/* a trap cannot be ignored */
		memset(&fatal, 0, sizeof fatal);
		fatal.sa_handler = SIG_DFL;
		sigaction(SIGTRAP, &fatal, NULL);
		raise(SIGTRAP);
	}
}

/* Reports whether the breakpoint of a site is this agent's now. */
SDT_AGENT_FN int
sdt_agent_owns_trap(const struct sdt_agent_armed *a)
{
	return (a->way == SDT_AGENT_BY_JUMP ||
	    (a->way == SDT_AGENT_BY_BREAKPOINT && __atomic_load_n(&a->used, __ATOMIC_SEQ_CST) == 1));
}

SDT_AGENT_FN void
sdt_agent_on_trap(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = (ucontext_t *)context;
	struct sdt_agent_armed *a = NULL;
	struct sdt_agent_regs regs;
	unsigned char now[sizeof sdt_agent_trap];
	uintptr_t at, to;
	int i;

#if defined(__x86_64__)
	static const unsigned char from[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	    REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	at = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP] - 1;
	for (i = 0; i < 16; i++)
		regs.r[i] = (uintptr_t)uc->uc_mcontext.gregs[from[i]];
#else
	at = (uintptr_t)uc->uc_mcontext.pc;
	for (i = 0; i < 31; i++)
		regs.r[i] = (uintptr_t)uc->uc_mcontext.regs[i];
	regs.r[SDT_AGENT_SP] = (uintptr_t)uc->uc_mcontext.sp;
#endif
	for (i = 0; i < SDT_AGENT_SITES && a == NULL && info->si_code > 0; i++)
		if (__atomic_load_n(&sdt_agent.armed[i].used, __ATOMIC_ACQUIRE) != 0 && sdt_agent.armed[i].code == at)
			a = &sdt_agent.armed[i];
	/*
	 * The breakpoint may have gone since, or is being set again. One that is there all the time, while the site is off,
	 * is another's.
	 */
	for (i = 0; (a == NULL || !sdt_agent_owns_trap(a)) && info->si_code > 0 && i < 50; i++)
		if (sdt_agent_read(now, at, sizeof now) == 0 && memcmp(now, sdt_agent_trap, sizeof now) != 0)
			break;
	if ((a == NULL || !sdt_agent_owns_trap(a)) && (i == 50 || info->si_code <= 0)) {
		sdt_agent_pass_on(signal, info, context);
		return;
	}
	if (a == NULL || !sdt_agent_owns_trap(a)) {
		to = at;
	} else if (a->way == SDT_AGENT_BY_JUMP)	/* while its code is written */
		to = a->code + a->length;
	else {
		to = a->site.address + a->step;
		if (!a->site.is_test)
			sdt_agent_fire(a, &regs);
#if defined(__x86_64__)
		else
			uc->uc_mcontext.gregs[REG_RAX] = 1;
		if (a->step == 0) {
			to = *(uintptr_t *)regs.r[SDT_AGENT_SP];
			uc->uc_mcontext.gregs[REG_RSP] += (greg_t)sizeof to;
		}
#else
		else
			uc->uc_mcontext.regs[0] = 1;
		if (a->step == 0)
			to = uc->uc_mcontext.regs[30];
#endif
	}
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)to;
#else
	uc->uc_mcontext.pc = to;
#endif
}

SDT_AGENT_FN int
sdt_agent_handle_traps(void)
{
	struct sigaction sa;

	if (sdt_agent.handles_sigtrap)
		return (0);
	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = sdt_agent_on_trap;
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK;
	if (sigaction(SIGTRAP, &sa, &sdt_agent.before) != 0)
		return (SDT_AGENT_SIGNAL);
	sdt_agent.handles_sigtrap = 1;
	return (0);
}

/* Arms the code of a site. Returns 0, or a reason. */
SDT_AGENT_FN int
sdt_agent_arm(struct sdt_agent_armed *a)
{
	unsigned char code[16];
	size_t n = sizeof code;
	int error;

	while (n > 0 && sdt_agent_read(code, a->site.address, n) != 0)
		n--;			/* the code ends there */
	memset(code + n, 0, sizeof code - n);
	if ((error = sdt_agent_form(a, code)) != 0 || (error = sdt_agent_handle_traps()) != 0)
		return (error);
	sdt_agent_arguments(a);
	sdt_agent_trampoline(a);
	if (a->way == SDT_AGENT_BY_BREAKPOINT)
		a->length = sizeof sdt_agent_trap;
	memcpy(a->old, code + (a->code - a->site.address), a->length);
	memcpy(a->now, a->old, a->length);
	if (a->way == SDT_AGENT_BY_BREAKPOINT)
		memcpy(a->now, sdt_agent_trap, sizeof sdt_agent_trap);
	else {
#if defined(__x86_64__)
		int32_t distance = (int32_t)((intptr_t)a->trampoline - (intptr_t)(a->code + 5));

		a->now[0] = 0xe9;		/* jmp */
		memcpy(a->now + 1, &distance, 4);
#else
		uint32_t b = 0x14000000 | (uint32_t)(((intptr_t)a->trampoline - (intptr_t)a->code) >> 2 & 0x3ffffff);

		memcpy(a->now, &b, 4);		/* b */
#endif
	}
	__atomic_store_n(&a->used, 1, __ATOMIC_RELEASE);
	if ((error = sdt_agent_replace(a, a->now)) != 0)
		__atomic_store_n(&a->used, 2, __ATOMIC_RELEASE);
	return (error);
}

/* Puts the code of a site back, if it is what this agent has written. Returns 0, or a reason; 1 if it was not. */
SDT_AGENT_FN int
sdt_agent_disarm(struct sdt_agent_armed *a)
{
	unsigned char code[16];

	if (sdt_agent_read(code, a->code, a->length) != 0 || memcmp(code, a->now, a->length) != 0)
		return (1);		/* the image is another, or another tracer has put it back */
	return (sdt_agent_replace(a, a->old));
}
#else	/* another machine */
SDT_AGENT_FN int
sdt_agent_arm(struct sdt_agent_armed *a)
{
	(void)a;
	return (SDT_AGENT_MACHINE);
}

SDT_AGENT_FN int
sdt_agent_disarm(struct sdt_agent_armed *a)
{
	(void)a;
	return (0);
}
#endif

/* What sdt_agent_on and sdt_agent_off are asked for. */
struct sdt_agent_order {
	const char *pattern;
	sdt_agent_handler *handler;	/* NULL to switch off */
	void *data;
	int done, left, error;
	int blocked;			/* a thread blocks SIGTRAP */
	uintptr_t low, high;		/* the image that cannot go away now */
};

/*
 * Adds to a semaphore, which never goes below 0. Tracers of the kernel count it, too. The word around it is written,
 * because not all machines have atomic operations on two bytes.
 */
SDT_AGENT_FN void
sdt_agent_count(uint16_t *semaphore, int n)
{
	const uintptr_t at = (uintptr_t)semaphore, inner = at & 2;
	uint32_t *word = (uint32_t *)(at - inner), old = __atomic_load_n(word, __ATOMIC_SEQ_CST), next;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	const unsigned shift = inner ? 0 : 16;
#else
	const unsigned shift = inner ? 16 : 0;
#endif

	do {
		const uint32_t value = old >> shift & 0xffff;

		if (value == 0 && n < 0)
			return;
		next = (old & ~((uint32_t)0xffff << shift)) | ((value + (uint32_t)n) & 0xffff) << shift;
	} while (!__atomic_compare_exchange_n(word, &old, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

/* Waits until no thread is in the handler of a site that is off. Returns 0, or -1 after a second: a handler may be left by siglongjmp. */
SDT_AGENT_FN int
sdt_agent_quiet(struct sdt_agent_armed *a)
{
	int i;

	for (i = 0; i < 10000 && __atomic_load_n(&a->inside, __ATOMIC_SEQ_CST) != 0; i++)
		usleep(100);
	return (i < 10000 ? 0 : -1);
}

/* Reports whether a site that is on is still as it was left: its library may have been loaded again. */
SDT_AGENT_FN int
sdt_agent_is_on(const struct sdt_agent_armed *a)
{
	unsigned char code[16];
	uint16_t value = 0;

	if (a->way != SDT_AGENT_BY_SEMAPHORE)
		return (sdt_agent_read(code, a->code, a->length) == 0 && memcmp(code, a->now, a->length) == 0);
	return (sdt_agent_read(&value, (uintptr_t)a->site.semaphore, sizeof value) == 0 && value != 0);
}

/* Switches one site on. */
SDT_AGENT_FN int
sdt_agent_switch(const struct sdt_agent_site *site, void *data)
{
	struct sdt_agent_order *o = (struct sdt_agent_order *)data;
	struct sdt_agent_armed *a = NULL;
	int i, error = 0;

	if (site->address < o->low || site->address >= o->high)
		return (0);
	for (i = 0; i < SDT_AGENT_SITES; i++)
		if (sdt_agent.armed[i].used != 0 && sdt_agent.armed[i].site.address == site->address) {
			a = &sdt_agent.armed[i];
			break;
		} else if (sdt_agent.armed[i].used == 0 && a == NULL)
			a = &sdt_agent.armed[i];
	if (a == NULL)
		error = SDT_AGENT_FULL;
	else if (a->used == 1 && sdt_agent_is_on(a))
		error = SDT_AGENT_TAKEN;
	else {
		__atomic_store_n(&a->used, 2, __ATOMIC_SEQ_CST);
		if (sdt_agent_quiet(a) != 0)
			error = SDT_AGENT_TAKEN;
	}
	if (error == 0) {
		a->site = *site;
		a->handler = o->handler;
		a->data = o->data;
		if (site->is_test && site->semaphore != NULL) {
			a->way = SDT_AGENT_BY_SEMAPHORE;
			__atomic_store_n(&a->used, 1, __ATOMIC_SEQ_CST);
		} else
			error = o->blocked ? SDT_AGENT_SIGNAL : sdt_agent_arm(a);
	}
	if (error != 0) {
		o->error = error;
		o->left++;
		return (0);
	}
	if (site->semaphore != NULL)
		sdt_agent_count(site->semaphore, 1);
	o->done++;
	return (0);
}

/* Works on an image while the loader cannot unload it (dl_iterate_phdr). */
SDT_AGENT_FN int
sdt_agent_image_order(struct dl_phdr_info *info, size_t size, void *data)
{
	struct sdt_agent_order *o = (struct sdt_agent_order *)data;
	int i, got;
	(void)size;

	sdt_agent_bounds(info, 0, &o->low, &o->high);
	if (o->handler != NULL) {
		got = sdt_agent_each(o->pattern, sdt_agent_switch, o);
		if (got < 0)
			o->error = got;
		return (0);
	}
	for (i = 0; i < SDT_AGENT_SITES; i++) {
		struct sdt_agent_armed *a = &sdt_agent.armed[i];

		struct sdt_agent_site site;

		if (a->used != 1 || a->site.address < o->low || a->site.address >= o->high || !sdt_agent_match(&a->site, o->pattern))
			continue;
		/* In the place of the library there may be another one. */
		if (sdt_agent_at(a->site.address, &site) != 0 || strcmp(site.name, a->site.name) != 0 || site.semaphore != a->site.semaphore)
			continue;
		if (a->way != SDT_AGENT_BY_SEMAPHORE && (got = sdt_agent_disarm(a)) < 0) {
			o->error = got;
			continue;
		}
		__atomic_store_n(&a->used, 2, __ATOMIC_SEQ_CST);
		if (a->site.semaphore != NULL)
			sdt_agent_count(a->site.semaphore, -1);
		o->done++;
	}
	return (0);
}

/* Reports whether a thread blocks SIGTRAP now. */
SDT_AGENT_FN int
sdt_agent_thread_blocks(const char *tid)
{
	char path[64], status[4096];
	const char *mask;
	ssize_t size;
	int fd;

	memcpy(path, "/proc/self/task/", 17);
	strcat(strcat(path, tid), "/status");
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return (0);
	size = read(fd, status, sizeof status - 1);
	close(fd);
	status[size > 0 ? size : 0] = 0;
	/* sixteen digits, of which the last but one has signals 5 to 8 */
	if ((mask = strstr(status, "\nSigBlk:\t")) == NULL || strcspn(mask + 9, "\n") != 16)
		return (0);
	return ((mask[9 + 14] & 1) != (mask[9 + 14] > '9'));
}

/*
 * Reports whether some thread blocks SIGTRAP: the kernel would end the process
 * at a breakpoint. The C library does so for a moment in threads that begin or end.
 */
SDT_AGENT_FN int
sdt_agent_is_blocked(void)
{
	char entries[2048];
	int i, blocked = 0, directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n, at;

	while (directory >= 0 && (n = syscall(SYS_getdents64, (long)directory, entries, (long)sizeof entries)) > 0)
		for (at = 0; at < n; at += *(unsigned short *)(void *)(entries + at + 16)) {
			const char *name = entries + at + 19;

			if (*name < '0' || *name > '9' || strlen(name) > 20)
				continue;
			for (i = 0; i < 50 && sdt_agent_thread_blocks(name); i++)
				usleep(1000);
			blocked |= i == 50;
		}
	if (directory >= 0)
		close(directory);
	return (blocked);
}

/* Reports whether a site that is to be off has this agent's code still. */
SDT_AGENT_FN int
sdt_agent_remains(const struct sdt_agent_order *o, const struct sdt_agent_armed *a)
{
	return (a->used == 1 && a->way != SDT_AGENT_BY_SEMAPHORE && sdt_agent_match(&a->site, o->pattern) && sdt_agent_is_on(a));
}

SDT_AGENT_FN int
sdt_agent_carry_out(struct sdt_agent_order *o)
{
	sigset_t all, before;
	pid_t holder;
	int i, images, tries;

	if (!sdt_agent.started)
		return (SDT_AGENT_NOT_STARTED);
	sigfillset(&all);
	sigdelset(&all, SIGTRAP);	/* this thread may meet a breakpoint, too */
	sigprocmask(SIG_BLOCK, &all, &before);
	for (holder = 0; !__atomic_compare_exchange_n(&sdt_agent.lock, &holder, getpid(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);)
		if (holder == getpid()) {
			usleep(100);
			holder = 0;
		}
#ifndef SDT_AGENT_MPROTECT	/* an emulator has threads of its own */
	o->blocked = o->handler != NULL && (sigismember(&before, SIGTRAP) == 1 || sdt_agent_is_blocked());
#endif
	/* An image that another thread loads meanwhile is found the next time. */
	for (tries = 0; tries < 100 && o->error == 0; tries++) {
		if ((images = sdt_agent_refresh()) < 0)
			o->error = images;
		dl_iterate_phdr(sdt_agent_image_order, o);
		for (i = 0; i < SDT_AGENT_SITES && (o->handler != NULL || !sdt_agent_remains(o, &sdt_agent.armed[i])); i++)
			;
		if (i == SDT_AGENT_SITES)
			break;
		usleep(100);
	}
	for (i = 0; i < SDT_AGENT_SITES && o->handler == NULL; i++) {
		struct sdt_agent_armed *a = &sdt_agent.armed[i];

		if (a->used == 1 && sdt_agent_match(&a->site, o->pattern) && o->error == 0 && !sdt_agent_remains(o, a)) {
			a->used = 2;	/* its image has gone */
			o->done++;
		}
		if (a->used == 2 && sdt_agent_busy == 0)
			sdt_agent_quiet(a);
	}
	if (o->handler != NULL) {
		sdt_agent.left = o->left;
		sdt_agent.reason = o->error;
	}
	__atomic_store_n(&sdt_agent.lock, 0, __ATOMIC_RELEASE);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return (o->done > 0 ? o->done : o->error != 0 ? o->error : SDT_AGENT_NO_SITE);
}

/*
 * Switches on all sites that match: tests become true, and the handler is
 * called at each call. Returns how many sites were switched on, or a reason if
 * none was. Not for signal handlers.
 */
SDT_AGENT_FN int
sdt_agent_on(const char *pattern, sdt_agent_handler *handler, void *data)
{
	struct sdt_agent_order o = { pattern, handler, data, 0, 0, 0, 0, 0, 0 };

	return (sdt_agent_carry_out(&o));
}

/* Returns how many matching sites the last sdt_agent_on has left off, and why the last of them. */
SDT_AGENT_FN int
sdt_agent_left(int *reason)
{
	*reason = sdt_agent.reason;
	return (sdt_agent.left);
}

/*
 * Switches off what this agent has switched on and matches. Code is as
 * before, and no thread is in a handler any more, unless a handler calls it.
 */
SDT_AGENT_FN int
sdt_agent_off(const char *pattern)
{
	struct sdt_agent_order o = { pattern, NULL, NULL, 0, 0, 0, 0, 0, 0 };

	return (sdt_agent_carry_out(&o));
}

/* Finds the images. Returns how many have probes, or a reason. */
SDT_AGENT_FN int
sdt_agent_start(void)
{
	int probe = 1, read = 0;

	if (sdt_agent_read(&read, (uintptr_t)&probe, sizeof probe) != 0 || read != probe)
		return (SDT_AGENT_MEMORY);
	if (sdt_agent.list == NULL)
		sdt_agent.list = &sdt_agent.lists[0];
	sdt_agent.started = 1;
#if defined(__x86_64__)
	__builtin_cpu_init();
	sdt_agent.jumps = 1;
	sdt_agent.vectors = __builtin_cpu_supports("avx") != 0;	/* and so xsave */
#elif defined(__aarch64__)
	sdt_agent.jumps = 1;
	sdt_agent.vectors = (getauxval(AT_HWCAP) >> 22 & 1) == 0;	/* without SVE */
#endif
	/* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE */
	if (syscall(SYS_membarrier, 1L << 6, 0L, 0L) != 0)
		sdt_agent.jumps = 0;
	return (sdt_agent_refresh());
}

#endif /* !SDTCONVERT_SDT_AGENT_H */
