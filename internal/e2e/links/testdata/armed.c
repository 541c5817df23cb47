/*
 * Counts how often each site of a program made at random is reached, by a trap in its place. A
 * handler does what the disabled site does. -DSTUBS prints what the stubs of the unconverted twin
 * have counted.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern int options_counts[5];

static void __attribute__((destructor)) print(void)
{
	puts("counts");
	for (int i = 0; i < 5; i++)
		printf("%d: %d\n", i, options_counts[i]);
}

#ifndef STUBS
struct record {
	char *probe;
	uintptr_t site;
};
extern struct record calls[] __asm__("__start_sdt_instances_set") __attribute__((weak));
extern struct record calls_end[] __asm__("__stop_sdt_instances_set") __attribute__((weak));
extern struct record tests[] __asm__("__start_sdt_isenabled_set") __attribute__((weak));
extern struct record tests_end[] __asm__("__stop_sdt_isenabled_set") __attribute__((weak));
extern char sdt_registers___one[], sdt_registers___two[], sdt_registers___none[], sdt_registers___nine[];

enum { MAX = 4096 };
static struct {
	uintptr_t site;
	int counter;
	unsigned char was[8];
} sites[MAX];
static int count;

static void die(const char *why)
{
	fprintf(stderr, "armed: %s\n", why);
	_exit(3);
}

#if defined(__x86_64__) || defined(__i386__)
#ifdef __x86_64__
#define PC gregs[REG_RIP]
#define SP gregs[REG_RSP]
#define RESULT gregs[REG_RAX]
#else
#define PC gregs[REG_EIP]
#define SP gregs[REG_ESP]
#define RESULT gregs[REG_EAX]
#endif
enum { BEHIND = 1 }; /* where a trap is reported, from its beginning */
static const unsigned char trap[] = { 0xcc };
static int step(mcontext_t *m, const unsigned char *was)
{
	static const struct {
		int size;
		unsigned char code[6];
	} nops[] = {
		{ 5, { 0x0f, 0x1f, 0x44, 0, 0 } }, { 6, { 0x66, 0x0f, 0x1f, 0x44, 0, 0 } }, { 2, { 0x66, 0x90 } }, { 3, { 0x0f, 0x1f, 0 } },
		{ 4, { 0x0f, 0x1f, 0x40, 0 } }, { 5, { 0x3e, 0x8d, 0x74, 0x26, 0 } }, { 6, { 0x8d, 0xb6, 0, 0, 0, 0 } },
	};
	if (was[0] == 0xc3) {
		m->PC = *(uintptr_t *)m->SP;
		m->SP += sizeof(uintptr_t);
		return 1;
	}
	if (was[0] == 0x31 && was[1] == 0xc0) {
		m->RESULT = 0;
		m->PC += 2;
		return 1;
	}
	for (unsigned i = 0; i < sizeof nops / sizeof *nops; i++)
		if (memcmp(was, nops[i].code, nops[i].size) == 0) {
			m->PC += nops[i].size;
			return 1;
		}
	return 0;
}
#elif defined(__s390x__)
#define PC psw.addr
enum { BEHIND = 2 };
static const unsigned char trap[] = { 0, 1 };
static int step(mcontext_t *m, const unsigned char *was)
{
	if (was[0] == 0xc0 && was[1] == 0x04)
		m->PC += 6;
	else if (was[0] == 0x07 && was[1] == 0xfe)
		m->PC = m->gregs[14];
	else if (was[0] == 0xa7 && was[1] == 0x29) {
		m->gregs[2] = 0;
		m->PC += 4;
	} else if (was[0] == 0xc0 && (was[1] & 0x0f) == 0x04) { /* a conditional jump to a helper */
		int32_t halves;
		int condition = m->psw.mask >> 44 & 3;
		memcpy(&halves, was + 2, 4);
		if (!(was[1] >> 4 & 8 >> condition)) {
			m->PC += 6;
			return 2;
		}
		m->PC += 2 * (long)halves;
	} else
		return 0;
	return 1;
}
#elif defined(__arm__)
#define PC arm_pc
enum { BEHIND = 0 };
static const unsigned char trap[] = { 0x70, 0x00, 0x20, 0xe1 };
static const unsigned char thumb_trap[] = { 0x00, 0xbe };
static int holds(mcontext_t *m, int condition)
{
	int n = m->arm_cpsr >> 31, z = m->arm_cpsr >> 30 & 1, c = m->arm_cpsr >> 29 & 1, v = m->arm_cpsr >> 28 & 1;
	int all[] = { z, c, n, v, c && !z, n == v, n == v && !z, 1 };
	return all[condition >> 1] ^ (condition & 1 && condition < 14);
}
static int is_a32(const unsigned char *was)
{
	uint32_t code;
	memcpy(&code, was, 4);
	code &= 0x0fffffff;
	return code == 0x0320f000 || code == 0x01a00000 || code == 0x012fff1e || code == 0x03a00000 || (code >> 24 == 0x0a && was[3] >> 4 != 15);
}
static int step(mcontext_t *m, const unsigned char *was)
{
	uint32_t code;
	memcpy(&code, was, 4);
	if (m->arm_cpsr & 0x20) {
		uint16_t half = code;
		if (code == 0x8000f3af)
			m->PC += 4;
		else if (half == 0xbf00)
			m->PC += 2;
		else if (half == 0x4770) {
			m->PC = m->arm_lr & ~1u;
			m->arm_cpsr = (m->arm_cpsr & ~0x20u) | (m->arm_lr & 1) << 5;
		} else if (code == 0x0000f04f || half == 0x2000) {
			m->arm_r0 = 0;
			m->PC += half == 0x2000 ? 2 : 4;
		} else
			return 0;
		return 1;
	}
	if (!holds(m, code >> 28)) {
		m->PC += 4;
		return 2; /* not reached */
	}
	code &= 0x0fffffff;
	if (code == 0x0320f000 || code == 0x01a00000)
		m->PC += 4;
	else if (code == 0x012fff1e) {
		m->PC = m->arm_lr & ~1u;
		m->arm_cpsr |= (m->arm_lr & 1) << 5;
	} else if (code == 0x03a00000) {
		m->arm_r0 = 0;
		m->PC += 4;
	} else if (code >> 24 == 0x0a) /* a jump to a helper */
		m->PC += 8 + ((int32_t)(code << 8) >> 6);
	else
		return 0;
	return 1;
}
#else
#if defined(__aarch64__)
#define PC pc
#define LINK regs[30]
#define RESULT regs[0]
enum { BEHIND = 0, TRAP = 0xd4200000, NOP = 0xd503201f, RETURN = 0xd65f03c0, ZERO = 0x52800000, JUMP = 0x14000000, JUMP_SHIFT = 6, JUMP_UNIT = 4 };
#define JUMP_MASK 0x03ffffffu
#elif defined(__riscv)
#define PC __gregs[0]
#define LINK __gregs[1]
#define RESULT __gregs[10]
enum { BEHIND = 0, TRAP = 0x00100073, NOP = 0x00000013, RETURN = 0x00008067, ZERO = 0x00000513, JUMP = 0, JUMP_SHIFT = 0, JUMP_UNIT = 0 };
#define JUMP_MASK 0u
#elif defined(__powerpc64__)
#define PC gp_regs[32]
#define LINK gp_regs[36]
#define RESULT gp_regs[3]
enum { BEHIND = 0, TRAP = 0x7fe00008, NOP = 0x60000000, RETURN = 0x4e800020, ZERO = 0x38600000, JUMP = 0x48000000, JUMP_SHIFT = 6, JUMP_UNIT = 1 };
#define JUMP_MASK 0x03fffffcu
#elif defined(__loongarch__)
#define PC __pc
#define LINK __gregs[1]
#define RESULT __gregs[4]
enum { BEHIND = 0, TRAP = 0x002a0000, NOP = 0x03400000, RETURN = 0x4c000020, ZERO = 0x00150004, JUMP = 0x50000000 };
#define JUMP_MASK 0x03ffffffu
#define DISTANCE(field) (((int32_t)((((field) & 0x3ff) << 16 | (field) >> 10) << 6) >> 6) * 4)
#endif
#ifndef DISTANCE
#define DISTANCE(field) (((int32_t)((field) << JUMP_SHIFT) >> JUMP_SHIFT) * JUMP_UNIT)
#endif
static const uint32_t trap[] = { TRAP };
static int step(mcontext_t *m, const unsigned char *was)
{
	uint32_t code;
	memcpy(&code, was, 4);
	if (code == RETURN) {
		m->PC = m->LINK;
		return 1;
	}
	if ((code & ~JUMP_MASK) == (uint32_t)JUMP && JUMP != 0) { /* to a helper */
		m->PC += DISTANCE(code & JUMP_MASK);
		return 1;
	}
	if (code != (uint32_t)NOP && code != (uint32_t)ZERO)
		return 0;
	if (code == (uint32_t)ZERO)
		m->RESULT = 0;
	m->PC += 4;
	return 1;
}
#endif

static void reached(int signal, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	(void)signal, (void)info;
	for (int i = 0; i < count; i++)
		if ((uintptr_t)m->PC == sites[i].site + BEHIND) {
			m->PC = sites[i].site;
			int stepped = step(m, sites[i].was);
			if (!stepped)
				die("a site of no form that is known");
			options_counts[sites[i].counter] += stepped == 1;
			return;
		}
	die("a trap that is of no site");
}

static void arm(const struct record *r, int is_test)
{
	static char *probes[] = { sdt_registers___one, sdt_registers___two, sdt_registers___none, sdt_registers___nine };
	int counter = 4;
	if (!is_test)
		for (counter = 0; probes[counter] != r->probe;)
			if (++counter == 4)
				die("a record of no probe");
	if (count == MAX)
		die("too many sites");
	sites[count].site = r->site;
	sites[count].counter = counter;
	memcpy(sites[count++].was, (void *)r->site, 8);
}

static void __attribute__((constructor)) arm_all(void)
{
	static char stack[65536];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_sigaction = reached, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	long page = sysconf(_SC_PAGESIZE);
	sigaltstack(&alternate, NULL);
	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGILL, &action, NULL); /* qemu has it for the trap of s390x */
	for (struct record *r = calls; r != calls_end; r++)
		arm(r, 0);
	for (struct record *r = tests; r != tests_end; r++)
		arm(r, 1);
	for (int i = 0; i < count; i++) {
		const void *code = trap;
		size_t size = sizeof trap;
#ifdef __arm__
		if (!is_a32(sites[i].was))
			code = thumb_trap, size = sizeof thumb_trap;
#endif
		char *begin = (char *)(sites[i].site & -page);
		if (mprotect(begin, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 && mprotect(begin, page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
			die("no page to write");
		memcpy((void *)sites[i].site, code, size);
		__builtin___clear_cache((char *)sites[i].site, (char *)sites[i].site + 8);
	}
}
#endif
