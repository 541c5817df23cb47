/*
 * Forms that are not sites, one per object: -DWORD and so on. Each object has
 * one good call before the bad reference, and all of them are refused.
 */
	.syntax unified
	.arch	armv7-a
	.text
	.arm
	.globl	bad
	.type	bad, %function
bad:
	bl	__dtrace_probe_bad___good
#if defined WORD
	ldr	r3, 1f
	blx	r3
	b	2f
1:	.word	__dtrace_probe_bad___form
2:
#elif defined GOTWORD
	ldr	r3, 1f
	b	2f
1:	.word	__dtrace_probe_bad___form(GOT_PREL)
2:
#elif defined MOVW
	movw	r3, #:lower16:__dtrace_probe_bad___form
	movt	r3, #:upper16:__dtrace_probe_bad___form
	blx	r3
#elif defined PREL
	.word	__dtrace_probe_bad___form - .
#elif defined PLUS4
	bl	__dtrace_probe_bad___form + 4
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.reloc	., R_ARM_CALL, __dtrace_probe_bad___form
	mov	r0, r1
#elif defined TWICE
	/* Two relocations on one site. */
	.reloc	., R_ARM_CALL, __dtrace_probe_bad___form
	bl	__dtrace_probe_bad___other
#elif defined UNALIGNED
	/* A call's relocation between two instructions. */
	.reloc	. + 2, R_ARM_CALL, __dtrace_probe_bad___form
	nop
	nop
#elif defined LAST
	/* A call's relocation at the end of its section. */
	.section .text.last, "ax", %progbits
	.reloc	4, R_ARM_CALL, __dtrace_probe_bad___form
	nop
	.previous
#elif defined OTHERSET
	/* A Thumb call's relocation in A32. */
	.reloc	., R_ARM_THM_CALL, __dtrace_probe_bad___form
	nop
#elif defined SHORT
	.thumb
	b.n	__dtrace_probe_bad___form
	bx	lr
#elif defined SHORTCOND
	.thumb
	bne.n	__dtrace_probe_bad___form
	bx	lr
#elif defined CONDTEST
	.thumb
	.reloc	., R_ARM_THM_JUMP19, __dtrace_isenabled_bad___form
	bne.w	.
	bx	lr
#elif defined OVERLAP
	/* The second call begins within the first. */
	.thumb
	.reloc	., R_ARM_THM_CALL, __dtrace_probe_bad___form
	.short	0xf7ff
	.reloc	., R_ARM_THM_CALL, __dtrace_probe_bad___other
	.short	0xffff, 0xfffe
	bx	lr
#else
#error "no form named"
#endif
	.arm
	bx	lr
	.size	bad, . - bad

	.section .note.GNU-stack, "", %progbits
