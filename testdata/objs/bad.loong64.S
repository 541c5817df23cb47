/*
 * Forms that are not sites, one per object: -DBEQZ and so on. Each object has one
 * good call before the bad reference.
 */
	.text
	.globl	bad
	.type	bad, @function
bad:
	bl	__dtrace_probe_bad___good
#if defined BEQZ
	beqz	$a0, __dtrace_probe_bad___form
#elif defined BNE
	bne	$a0, $a1, __dtrace_isenabled_bad___form
#elif defined LA
	la.local	$a0, __dtrace_probe_bad___form
#elif defined LAGOT
	la.global	$a0, __dtrace_probe_bad___form
	jirl	$ra, $a0, 0
#elif defined EXTREME
	la.global	$a0, $t0, __dtrace_probe_bad___form
	jirl	$ra, $a0, 0
#elif defined PAGE
	/* The medium code model before there was R_LARCH_CALL36. */
	pcalau12i	$ra, %pc_hi20(__dtrace_probe_bad___form)
	.reloc	., R_LARCH_PCALA_LO12, __dtrace_probe_bad___form
	jirl	$ra, $ra, 0
#elif defined PLUS4
	bl	%plt(__dtrace_probe_bad___form + 4)
#elif defined PREL
	.4byte	__dtrace_probe_bad___form - .
#elif defined WORD
	.8byte	__dtrace_probe_bad___form
#elif defined CALLT0
	pcaddu18i	$t1, %call36(__dtrace_probe_bad___form)
	jirl	$t1, $t1, 0
#elif defined STACK
	/* As binutils before 2.40 wrote a call, in version 0 of the ABI of objects. */
	.reloc	., R_LARCH_SOP_PUSH_PLT_PCREL, __dtrace_probe_bad___form
	.reloc	., R_LARCH_SOP_POP_32_S_0_10_10_16_S2
	.word	0x54000000
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.reloc	., R_LARCH_B26, __dtrace_probe_bad___form
	nop
#elif defined SPLIT
	/* A pcaddu18i whose jirl uses another register. */
	.reloc	., R_LARCH_CALL36, __dtrace_probe_bad___form
	.word	0x1e000001
	jirl	$ra, $t0, 0
#elif defined OVERLAP
	/* The second call begins within the first. */
	.reloc	., R_LARCH_CALL36, __dtrace_probe_bad___form
	.word	0x1e000001
	.reloc	., R_LARCH_CALL36, __dtrace_probe_bad___form
	jirl	$ra, $ra, 0
	jirl	$ra, $ra, 0
#elif defined TWICE
	/* Two relocations on one site. */
	.reloc	., R_LARCH_32, __dtrace_probe_bad___form
	bl	__dtrace_probe_bad___other
#elif defined LAST
	/* A call's relocation whose second half is missing. */
	.section .text.last, "ax", @progbits
	.reloc	., R_LARCH_CALL36, __dtrace_probe_bad___form
	.word	0x1e000001
	.previous
#else
#error "no form named"
#endif
	ret
	.size	bad, . - bad

	.section .note.GNU-stack, "", @progbits
