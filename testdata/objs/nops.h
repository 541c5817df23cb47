/*
 * Marked nops, as include/sdt.h has them in user land: a nop, R_*_NONE against the stub,
 * which is weak, and an entry of .sdt_operands.
 */
#if defined __x86_64__
#define NOPS_NOP ".byte 0x0f,0x1f,0x44,0x00,0x00"
#elif defined __i386__
#define NOPS_NOP ".byte 0x3e,0x8d,0x74,0x26,0x00"
#elif defined __aarch64__ || defined __powerpc64__
#define NOPS_NOP "nop"
#elif defined __loongarch__
#define NOPS_NOP "nop"
#elif defined __thumb__
#define NOPS_NOP "nop.w"
#elif defined __arm__
#define NOPS_NOP "nop"
#elif defined __s390x__
#define NOPS_NOP "brcl 0,."
#else
#define NOPS_NOP ".option push\n\t.option norvc\n\tnop\n\tnop\n\t.option pop"
#endif

#ifdef __cplusplus
#define NOPS_C extern "C"
#else
#define NOPS_C extern
#endif
#define NOPS_DECLARE(id) NOPS_C void __dtrace_probe_##id(void) __attribute__((weak, visibility("hidden")))

#define NOPS_SIZE(x) (((__typeof__(x))-1 < (__typeof__(x))1 ? -1 : 1) * (int)sizeof(x))
#define NOPS_ARG(n, x) [s##n] "n" (NOPS_SIZE(x)), [a##n] "nr" (x)
#define NOPS_PROBE(id, operands, ...) __asm__ volatile (							\
	"990:\t" NOPS_NOP "\n"											\
	"\t.weak __dtrace_probe_" #id "\n\t.hidden __dtrace_probe_" #id "\n"					\
	"\t.reloc 990b,BFD_RELOC_NONE,__dtrace_probe_" #id "\n"							\
	".pushsection .sdt_operands,\"e?\",%%progbits\n\t.dc.a 990b\n\t.asciz \"" operands "\"\n.popsection"	\
	:: [stub] "X" (__dtrace_probe_##id), ##__VA_ARGS__)
#define NOPS_PROBE0(id) NOPS_PROBE(id, "")
#define NOPS_PROBE2(id, a, b) NOPS_PROBE(id, "%c[s1]@%[a1] %c[s2]@%[a2]", NOPS_ARG(1, a), NOPS_ARG(2, b))

NOPS_DECLARE(nops___none);
NOPS_DECLARE(nops___two);
