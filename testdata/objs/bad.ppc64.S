/*
 * Forms that are not sites, one per object: -DBEQ and so on. Each object has
 * one good call before the bad reference, and all of them are refused.
 */
#if _CALL_ELF == 2
	.abiversion 2
#endif
	.text
	.type	bad, @function
bad:
	bl	__dtrace_probe_bad___good
	nop
#if defined BEQ
	beq	__dtrace_probe_bad___form
#elif defined BEQL
	beql	__dtrace_isenabled_bad___form
	nop
#elif defined BA
	ba	__dtrace_probe_bad___form
#elif defined PLTSEQ
	/* As -fno-plt has it. */
	lis	12, 0
	addis	12, 2, __dtrace_probe_bad___form@plt@ha
	ld	12, __dtrace_probe_bad___form@plt@l(12)
	mtctr	12
	bctrl
#elif defined GOT
	ld	12, __dtrace_probe_bad___form@got(2)
	mtctr	12
	bctrl
#elif defined TOC
	/* As clang's -mlongcall has it. */
	ld	12, 1f@toc(2)
	mtctr	12
	bctrl
	.section .toc, "aw"
1:	.quad	__dtrace_probe_bad___form
	.previous
#elif defined PLUS4
	bl	__dtrace_probe_bad___form + 4
	nop
#elif defined PREL
	.long	__dtrace_probe_bad___form - .
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.reloc	., R_PPC64_REL24, __dtrace_probe_bad___form
	beq	.
#elif defined TWICE
	/* Two relocations on one site. */
	.reloc	., R_PPC64_REL24_NOTOC, __dtrace_probe_bad___form
	bl	__dtrace_probe_bad___other
#elif defined UNALIGNED
	.byte	0, 0
	.reloc	., R_PPC64_REL24, __dtrace_probe_bad___form
	.long	0x48000001
	.byte	0, 0
#elif defined LAST
	/* A call's relocation at the end of its section. */
	.section .text.last, "ax", @progbits
	.short	0
	.reloc	0, R_PPC64_REL24, __dtrace_probe_bad___form
	.previous
#else
#error "no form named"
#endif
	blr
	.size	bad, . - bad

	.section .note.GNU-stack, "", @progbits
