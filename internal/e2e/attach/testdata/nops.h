/*
 * Marked nops, as include/sdt.h has them, but for a symbol at each: for the tests its name
 * tells the operands. It stays in images as long as its nop does.
 */

#ifdef __cplusplus
#define NOPS_C extern "C"
#else
#define NOPS_C extern
#endif

#if defined __x86_64__
#define NOPS_NOP ".byte 0x0f,0x1f,0x44,0x00,0x00"
#define NOPS_OPERAND "nor"
#elif defined __aarch64__
#define NOPS_NOP "nop"
#define NOPS_OPERAND "nor"
#elif defined __i386__
#define NOPS_NOP ".byte 0x3e,0x8d,0x74,0x26,0x00"
#define NOPS_OPERAND "nor"
#elif defined __arm__
#ifdef __thumb__
#define NOPS_NOP "nop.w"
#define NOPS_OPERAND "nl"
#else
#define NOPS_NOP "nop"
#define NOPS_OPERAND "nr" /* gcc would put a number into memory that has a local label */
#endif
#elif defined __loongarch__
#define NOPS_NOP "nop"
#define NOPS_OPERAND "nr"
#elif defined __powerpc64__
#define NOPS_NOP "nop"
#define NOPS_OPERAND "nZr"
#elif defined __s390x__
#define NOPS_NOP "brcl 0,."
#define NOPS_OPERAND "nor"
#else
#define NOPS_NOP ".option push\n\t.option norvc\n\tnop\n\tnop\n\t.option pop"
#define NOPS_OPERAND "nr"
#endif

/* Weak and hidden, so that programs link and run unconverted. */
#define NOPS_DECLARE(id) NOPS_C void __dtrace_probe_nops___##id(void) __attribute__((weak, visibility("hidden")))

#define NOPS_SIZE(x) (((__typeof__(x))-1 < (__typeof__(x))1 ? -1 : 1) * (int)sizeof(x))
#define NOPS_ARG(n, x) [s##n] "n" (NOPS_SIZE(x)), [a##n] NOPS_OPERAND (x)
#ifdef __powerpc64__ /* where registers are numbers, and numbers have an i before them */
#define NOPS_PLACE(a) "%I[" #a "]%[" #a "]"
#else
#define NOPS_PLACE(a) "%[" #a "]"
#endif
#define NOPS_1 "%c[s1]@" NOPS_PLACE(a1)
#define NOPS_2 NOPS_1 " %c[s2]@" NOPS_PLACE(a2)
#define NOPS_3 NOPS_2 " %c[s3]@" NOPS_PLACE(a3)
#define NOPS_4 NOPS_3 " %c[s4]@" NOPS_PLACE(a4)
#define NOPS_6 NOPS_4 " %c[s5]@" NOPS_PLACE(a5) " %c[s6]@" NOPS_PLACE(a6)

/* The stub is an operand, which is not used, for objects of link-time optimisation, which list no names of assembly. */
#define NOPS_PROBE(id, format, operands, list, ...) __asm__ volatile (							\
	NOPS_AT(id, operands) ":\n990:\t" NOPS_NOP "\n"								\
	"\t.weak __dtrace_probe_nops___" #id "\n\t.hidden __dtrace_probe_nops___" #id "\n"			\
	"\t.reloc 990b,BFD_RELOC_NONE,__dtrace_probe_nops___" #id "\n"						\
	".pushsection .sdt_operands,\"e?\",%%progbits\n"								\
	"\t.dc.a " NOPS_AT(id, operands) "\n\t.asciz \"" operands "\"\n.popsection"				\
	:: [stub] "X" (__dtrace_probe_nops___##id) NOPS_LIST list)
/* GNU as for riscv64 drops symbols that nothing refers to. */
#define NOPS_AT(id, operands) "\"nops:" #id " " operands " %=\""
#define NOPS_LIST(...) , ##__VA_ARGS__

#define NOPS_PROBE0(id) NOPS_PROBE(id, "%s", "", (), "")
#define NOPS_PROBE1(id, format, a) NOPS_PROBE(id, format, NOPS_1, (NOPS_ARG(1, a)), a)
#define NOPS_PROBE2(id, format, a, b) NOPS_PROBE(id, format, NOPS_2, (NOPS_ARG(1, a), NOPS_ARG(2, b)), a, b)
#define NOPS_PROBE4(id, format, a, b, c, d) NOPS_PROBE(id, format, NOPS_4,						\
	(NOPS_ARG(1, a), NOPS_ARG(2, b), NOPS_ARG(3, c), NOPS_ARG(4, d)), a, b, c, d)
#define NOPS_PROBE6(id, format, a, b, c, d, e, f) NOPS_PROBE(id, format, NOPS_6,					\
	(NOPS_ARG(1, a), NOPS_ARG(2, b), NOPS_ARG(3, c), NOPS_ARG(4, d), NOPS_ARG(5, e), NOPS_ARG(6, f)), a, b, c, d, e, f)

NOPS_DECLARE(none);
NOPS_DECLARE(two);
NOPS_DECLARE(four);
NOPS_DECLARE(six);
NOPS_DECLARE(generic);
NOPS_DECLARE(inlined);
NOPS_DECLARE(dead);

#ifdef __cplusplus
template <class T> __attribute__((noinline)) void nops_generic(T x, const char *of)
{
	NOPS_PROBE2(generic, "%ld %s", (long)x, of);
}

inline __attribute__((noinline)) int nops_inlined(int n)
{
	NOPS_PROBE1(inlined, "%d", n);
	return n;
}
#endif
NOPS_C void nops_cxx(int n);
NOPS_C void nops_more(int n);
