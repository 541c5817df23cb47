/*
 * Forms that are not sites, one per object: -DBCOND and so on. Each object has
 * one good call before the bad reference, and all of them are refused.
 */
	.text
	.globl	bad
	.type	bad, %function
bad:
	bl	__dtrace_probe_bad___good
#if defined BCOND
	b.eq	__dtrace_probe_bad___form
#elif defined BCONDTEST
	b.ne	__dtrace_isenabled_bad___form
#elif defined CBZ
	cbz	x0, __dtrace_probe_bad___form
#elif defined TBZ
	tbz	x0, #3, __dtrace_probe_bad___form
#elif defined ADRP
	adrp	x0, __dtrace_probe_bad___form
	add	x0, x0, :lo12:__dtrace_probe_bad___form
#elif defined ADRPGOT
	adrp	x0, :got:__dtrace_probe_bad___form
	ldr	x0, [x0, :got_lo12:__dtrace_probe_bad___form]
	blr	x0
#elif defined ADR
	adr	x0, __dtrace_probe_bad___form
#elif defined PLUS4
	bl	__dtrace_probe_bad___form + 4
#elif defined PREL
	.word	__dtrace_probe_bad___form - .
#elif defined LITERAL
	ldr	x0, 1f
	blr	x0
	ret
1:	.xword	__dtrace_probe_bad___form
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.reloc	., R_AARCH64_CALL26, __dtrace_probe_bad___form
	nop
#elif defined TWICE
	/* Two relocations on one site. */
	.reloc	., R_AARCH64_CALL26, __dtrace_probe_bad___form
	bl	__dtrace_probe_bad___other
#elif defined UNALIGNED
	/* A call's relocation between two instructions. */
	.reloc	. + 2, R_AARCH64_CALL26, __dtrace_probe_bad___form
	nop
	nop
#elif defined LAST
	/* A call's relocation at the end of its section. */
	.section .text.last, "ax", %progbits
	.reloc	4, R_AARCH64_CALL26, __dtrace_probe_bad___form
	nop
	.previous
#else
#error "no form named"
#endif
	ret
	.size	bad, . - bad

	.section .note.GNU-stack, "", %progbits
