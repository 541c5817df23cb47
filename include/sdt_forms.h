/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What stands at the sites of converted code, for kernels that arm them with
 * breakpoints: the bytes, how the handler goes on, and where the arguments
 * are.
 *
 *	const struct sdt_form *f = sdt_form(site, is_test);
 *	...
 *	the handler, with the program counter at the site:
 *		if (is_test)
 *			the register of SDT_RESULT = 1;
 *		if (f->step != 0)
 *			pc = site + f->step;
 *		else
 *			return to the caller of the function
 *
 * A record of sdt_instances_set has a site of a probe, one of
 * sdt_isenabled_set a test. The address is that of a record, so a conditional
 * tail call needs no row: its record leads to the return behind the jump.
 * Forms with semaphores, which --stapsdt makes of tests, are for programs and
 * not here.
 *
 * Needs no other header. docs/records.md has the forms of all.
 */
#ifndef SDTCONVERT_SDT_FORMS_H
#define	SDTCONVERT_SDT_FORMS_H

/* As sdt.h: nothing is here for other compilers, and where there is no ELF. */
#if defined(__GNUC__) && (defined(__ELF__) || (defined(__clang__) && __clang_major__ < 15)) &&	\
    !defined(__APPLE__) && !defined(_WIN32) && !defined(__CYGWIN__) && !defined(__UEFI__) && !defined(__wasm__) && !defined(_AIX)

struct sdt_form {
	unsigned char len;	/* of code and mask, in bytes */
	unsigned char code[6];	/* as in memory; where mask is 0, anything */
	unsigned char mask[6];
	unsigned char test;	/* 1: an is-enabled test, which gives 0 while disabled */
	unsigned char step;	/* from the site to where to go on; 0: return to the caller */
	unsigned char tail;	/* 1: the frame is gone, as at a return */
};

#define	SDT_X	0xff
#define	SDT_M1	{ SDT_X }
#define	SDT_M2	{ SDT_X, SDT_X }
#define	SDT_M3	{ SDT_X, SDT_X, SDT_X }
#define	SDT_M4	{ SDT_X, SDT_X, SDT_X, SDT_X }
#define	SDT_M5	{ SDT_X, SDT_X, SDT_X, SDT_X, SDT_X }
#define	SDT_M6	{ SDT_X, SDT_X, SDT_X, SDT_X, SDT_X, SDT_X }

/* Where one row's code begins as another's does, the longer one comes first. */
static const struct sdt_form sdt_forms[] = {
#if defined(__x86_64__) || defined(__amd64__)
/* Arguments: rdi, rsi, rdx, rcx, r8, r9, then (rsp), or 8(rsp) if tail. Result: eax. */
#define	SDT_REGISTERS	6
	{ 2, { 0x90, 0xc3 }, SDT_M2, 0, 1, 1 },			/* nop; ret */
	{ 1, { 0x90 }, SDT_M1, 0, 1, 0 },			/* nop; ... */
	{ 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 }, SDT_M6, 0, 6, 0 },
	{ 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, SDT_M5, 0, 5, 0 },
	{ 4, { 0x0f, 0x1f, 0x40, 0x00 }, SDT_M4, 0, 4, 0 },
	{ 3, { 0x0f, 0x1f, 0x00 }, SDT_M3, 0, 3, 0 },
	{ 2, { 0x66, 0x90 }, SDT_M2, 0, 2, 0 },
	{ 1, { 0xc3 }, SDT_M1, 0, 0, 1 },			/* ret */
	{ 1, { 0xe9 }, SDT_M1, 0, 0, 1 },			/* jmp to a return thunk */
	{ 1, { 0xeb }, SDT_M1, 0, 0, 1 },			/* jmp to such a jump */
	{ 2, { 0x31, 0xc0 }, SDT_M2, 1, 2, 0 },			/* xor %eax,%eax; ... */
	{ 1, { 0xe9 }, SDT_M1, 1, 0, 1 },			/* jmp to a helper */
#elif defined(__i386__)
/* Arguments: (esp), 4(esp), ..., 4 further on if tail. Result: eax. */
#define	SDT_REGISTERS	0
	{ 2, { 0x90, 0xc3 }, SDT_M2, 0, 1, 1 },
	{ 1, { 0x90 }, SDT_M1, 0, 1, 0 },
	{ 5, { 0x3e, 0x8d, 0x74, 0x26, 0x00 }, SDT_M5, 0, 5, 0 },
	{ 6, { 0x8d, 0xb6, 0x00, 0x00, 0x00, 0x00 }, SDT_M6, 0, 6, 0 },
	{ 1, { 0xc3 }, SDT_M1, 0, 0, 1 },
	{ 1, { 0xe9 }, SDT_M1, 0, 0, 1 },
	{ 1, { 0xeb }, SDT_M1, 0, 0, 1 },
	{ 2, { 0x31, 0xc0 }, SDT_M2, 1, 2, 0 },
	{ 1, { 0xe9 }, SDT_M1, 1, 0, 1 },
#elif defined(__arm__)
/*
 * Arguments: r0 to r3, then (sp). Result: r0. A32, and Thumb. A breakpoint of
 * A32 traps whatever the condition is that the code below it has in its top
 * four bits: if it is not true, the handler goes on behind the site, and
 * nothing was reached.
 */
#define	SDT_REGISTERS	4
	{ 4, { 0x00, 0xf0, 0x20, 0x03 }, { SDT_X, SDT_X, SDT_X, 0x0f }, 0, 4, 0 }, /* nop */
	{ 4, { 0x00, 0x00, 0xa0, 0x01 }, { SDT_X, SDT_X, SDT_X, 0x0f }, 0, 4, 0 }, /* mov r0, r0 */
	{ 4, { 0x1e, 0xff, 0x2f, 0x01 }, { SDT_X, SDT_X, SDT_X, 0x0f }, 0, 0, 1 }, /* bx lr */
	{ 4, { 0xaf, 0xf3, 0x00, 0x80 }, SDT_M4, 0, 4, 0 },	/* nop.w */
	{ 2, { 0x70, 0x47 }, SDT_M2, 0, 0, 1 },			/* bx lr */
	{ 4, { 0x00, 0x00, 0xa0, 0x03 }, { SDT_X, SDT_X, SDT_X, 0x0f }, 1, 4, 0 }, /* mov r0, #0 */
	{ 4, { 0x4f, 0xf0, 0x00, 0x00 }, SDT_M4, 1, 4, 0 },	/* mov.w r0, #0 */
	{ 2, { 0x00, 0x20 }, SDT_M2, 1, 2, 0 },			/* movs r0, #0; bx lr */
	{ 4, { 0x00, 0x00, 0x00, 0x0a }, { 0, 0, 0, 0x0f }, 1, 0, 1 }, /* b to a helper */
#elif defined(__aarch64__)
/* Arguments: x0 to x7, then (sp). Result: x0. Code is little-endian. */
#define	SDT_REGISTERS	8
	{ 4, { 0x1f, 0x20, 0x03, 0xd5 }, SDT_M4, 0, 4, 0 },	/* nop */
	{ 4, { 0xc0, 0x03, 0x5f, 0xd6 }, SDT_M4, 0, 0, 1 },	/* ret */
	{ 4, { 0x00, 0x00, 0x80, 0x52 }, SDT_M4, 1, 4, 0 },	/* mov w0, #0 */
	{ 4, { 0x00, 0x00, 0x00, 0x14 }, { 0, 0, 0, 0xfc }, 1, 0, 1 }, /* b to a helper */
#elif defined(__riscv) && __riscv_xlen == 64
/* Arguments: a0 to a7, then (sp). Result: a0. Each site has two instructions. */
#define	SDT_REGISTERS	8
	{ 4, { 0x13, 0x00, 0x00, 0x00 }, SDT_M4, 0, 4, 0 },	/* nop; nop */
	{ 4, { 0x67, 0x80, 0x00, 0x00 }, SDT_M4, 0, 0, 1 },	/* ret; nop */
	{ 4, { 0x13, 0x05, 0x00, 0x00 }, SDT_M4, 1, 4, 0 },	/* li a0, 0; nop or ret */
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
/* Arguments: r3 to r10. Result: r3. */
#define	SDT_REGISTERS	8
	{ 4, { 0x00, 0x00, 0x00, 0x60 }, SDT_M4, 0, 4, 0 },	/* nop */
	{ 4, { 0x20, 0x00, 0x80, 0x4e }, SDT_M4, 0, 0, 1 },	/* blr */
	{ 4, { 0x00, 0x00, 0x60, 0x38 }, SDT_M4, 1, 4, 0 },	/* li r3, 0 */
	{ 4, { 0x00, 0x00, 0x00, 0x48 }, { 3, 0, 0, 0xfc }, 1, 0, 1 }, /* b to a helper */
#elif defined(__powerpc64__)
#define	SDT_REGISTERS	8
	{ 4, { 0x60, 0x00, 0x00, 0x00 }, SDT_M4, 0, 4, 0 },
	{ 4, { 0x4e, 0x80, 0x00, 0x20 }, SDT_M4, 0, 0, 1 },
	{ 4, { 0x38, 0x60, 0x00, 0x00 }, SDT_M4, 1, 4, 0 },
	{ 4, { 0x48, 0x00, 0x00, 0x00 }, { 0xfc, 0, 0, 3 }, 1, 0, 1 },
#elif defined(__loongarch__) && __loongarch_grlen == 64
/* Arguments: a0 to a7. Result: a0. */
#define	SDT_REGISTERS	8
	{ 4, { 0x00, 0x00, 0x40, 0x03 }, SDT_M4, 0, 4, 0 },	/* nop */
	{ 4, { 0x20, 0x00, 0x00, 0x4c }, SDT_M4, 0, 0, 1 },	/* ret */
	{ 4, { 0x04, 0x00, 0x15, 0x00 }, SDT_M4, 1, 4, 0 },	/* move a0, zero; ... */
	{ 4, { 0x00, 0x00, 0x00, 0x50 }, { 0, 0, 0, 0xfc }, 1, 0, 1 }, /* b to a helper */
#elif defined(__s390x__)
/*
 * Arguments: r2 to r6, then 160(r15). Result: r2. A conditional tail call of
 * a test is a jump on its own condition, `c0 x4', and not here.
 */
#define	SDT_REGISTERS	5
	{ 6, { 0xc0, 0x04, 0x00, 0x00, 0x00, 0x00 }, SDT_M6, 0, 6, 0 },	/* brcl 0, . */
	{ 2, { 0x07, 0xfe }, SDT_M2, 0, 0, 1 },			/* br %r14 */
	{ 2, { 0xc0, 0xf4 }, SDT_M2, 0, 0, 1 },			/* jg to a return thunk */
	{ 4, { 0xa7, 0x29, 0x00, 0x00 }, SDT_M4, 1, 4, 0 },	/* lghi %r2, 0; ... */
	{ 2, { 0xc0, 0xf4 }, SDT_M2, 1, 0, 1 },			/* jg to a helper */
#endif
};

/* Returns the form of the code at a site, or NULL if it is none. */
static inline const struct sdt_form *
sdt_form(const unsigned char *site, int test)
{
	__SIZE_TYPE__ i;
	int j;

	for (i = 0; i < sizeof(sdt_forms) / sizeof(sdt_forms[0]); i++) {
		const struct sdt_form *f = &sdt_forms[i];

		if (f->test != test)
			continue;
		for (j = 0; j < f->len; j++)
			if ((site[j] & f->mask[j]) != f->code[j])
				break;
		if (j == f->len)
			return (f);
	}
	return ((const struct sdt_form *)0);
}

#endif
#endif /* !SDTCONVERT_SDT_FORMS_H */
