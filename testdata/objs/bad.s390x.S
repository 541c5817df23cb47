/*
 * Forms that are not sites, one per object: -DLARL and so on. Each object has
 * one good call before the bad reference, and all of them are refused.
 */
	.text
	.globl	bad
	.type	bad, @function
bad:
	brasl	%r14, __dtrace_probe_bad___good@PLT
#if defined LARL
	/* The relocation of a call, in a load of the address. */
	larl	%r2, __dtrace_probe_bad___form@PLT
#elif defined LARLNOPLT
	larl	%r2, __dtrace_probe_bad___form
#elif defined LGRLGOT
	lgrl	%r1, __dtrace_probe_bad___form@GOTENT
	basr	%r14, %r1
#elif defined LARLGOT
	larl	%r1, __dtrace_probe_bad___form@GOTENT
	lg	%r1, 0(%r1)
	basr	%r14, %r1
#elif defined GOT12
	larl	%r12, _GLOBAL_OFFSET_TABLE_
	lg	%r1, __dtrace_probe_bad___form@GOT(%r12)
	basr	%r14, %r1
#elif defined PLTOFF
	larl	%r12, _GLOBAL_OFFSET_TABLE_
	lgrl	%r1, 1f
	la	%r1, 0(%r1, %r12)
	basr	%r14, %r1
	br	%r14
	.p2align 3
1:	.reloc	., R_390_PLTOFF64, __dtrace_probe_bad___form
	.quad	0
#elif defined LITERAL
	lgrl	%r1, 1f
	basr	%r14, %r1
	br	%r14
	.p2align 3
1:	.quad	__dtrace_probe_bad___form
#elif defined BRAS
	bras	%r14, __dtrace_probe_bad___form
#elif defined J
	j	__dtrace_probe_bad___form
#elif defined JNE
	jne	__dtrace_isenabled_bad___form
#elif defined LGRL
	/* What stands there is loaded. */
	lgrl	%r2, __dtrace_probe_bad___form
#elif defined LINK1
	brasl	%r1, __dtrace_probe_bad___form@PLT
#elif defined LINK0
	/* A test that is called before a prologue. */
	brasl	%r0, __dtrace_isenabled_bad___form@PLT
#elif defined PLUS4
	brasl	%r14, __dtrace_probe_bad___form@PLT + 4
#elif defined NEVER
	brcl	0, __dtrace_probe_bad___form@PLT
#elif defined PREL
	.long	__dtrace_probe_bad___form - .
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.reloc	. + 2, R_390_PLT32DBL, __dtrace_probe_bad___form + 2
	lgfi	%r2, 0
#elif defined TWICE
	/* Two relocations on one site. */
	.reloc	. + 2, R_390_PC32DBL, __dtrace_probe_bad___form + 2
	brasl	%r14, __dtrace_probe_bad___other@PLT
#elif defined OVERLAP
	/* The second call begins within the first. */
	.reloc	. + 2, R_390_PLT32DBL, __dtrace_probe_bad___form + 2
	.reloc	. + 4, R_390_PLT32DBL, __dtrace_probe_bad___form + 2
	.short	0xc0e5, 0xc0e5, 0, 0
#elif defined UNALIGNED
	.byte	0
	.reloc	. + 2, R_390_PLT32DBL, __dtrace_probe_bad___form + 2
	.byte	0xc0, 0xe5, 0, 0, 0, 0, 0
#elif defined FIRST
	/* A call's relocation at the beginning of its section. */
	.section .text.first, "ax", @progbits
	.reloc	0, R_390_PLT32DBL, __dtrace_probe_bad___form + 2
	lgfi	%r2, 0
	.previous
#elif defined LAST
	/* A call's relocation at the end of its section. */
	.section .text.last, "ax", @progbits
	.short	0xc0e5, 0
	.reloc	2, R_390_PLT32DBL, __dtrace_probe_bad___form + 2
	.previous
#else
#error "no form named"
#endif
	br	%r14
	.size	bad, . - bad

	.section .note.GNU-stack, "", @progbits
