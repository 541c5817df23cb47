/*
 * Forms that are not sites, one per object: -DLEA and so on. Each object has one
 * good call before the bad reference, and all of them are refused.
 */
	.text
	.globl	bad
	.type	bad, @function
bad:
	call	__dtrace_probe_bad___good
#if defined LEA
	leaq	__dtrace_probe_bad___form(%rip), %rdi
#elif defined MOVGOT
	movq	__dtrace_probe_bad___form@GOTPCREL(%rip), %rax
	call	*%rax
#elif defined MOVIMM
	movl	$__dtrace_probe_bad___form, %edi
#elif defined PUSHIMM
	pushq	$__dtrace_probe_bad___form
#elif defined PUSHGOT
	pushq	__dtrace_probe_bad___form@GOTPCREL(%rip)
#elif defined CMPGOT
	cmpq	__dtrace_probe_bad___form@GOTPCREL(%rip), %rdi
#elif defined PLUS4
	call	__dtrace_probe_bad___form + 4
#elif defined PLUS4PLT
	.byte	0xe8
	.reloc	., R_X86_64_PLT32, __dtrace_probe_bad___form
	.long	0
#elif defined PREL
	.long	__dtrace_probe_bad___form - .
#elif defined LOOP
	loop	__dtrace_probe_bad___form
#elif defined JRCXZ
	jrcxz	__dtrace_probe_bad___form
#elif defined SHORT
	.byte	0xeb
	.reloc	., R_X86_64_PC8, __dtrace_probe_bad___form - 1
	.byte	0
#elif defined BND
	.byte	0xf2 /* bnd, which current assemblers do not know */
	call	__dtrace_probe_bad___form
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.byte	0x90
	.reloc	., R_X86_64_PLT32, __dtrace_probe_bad___form - 4
	.long	0
#elif defined TWICE
	/* Two relocations on one site. */
	.byte	0xe8
	.reloc	., R_X86_64_PLT32, __dtrace_probe_bad___form - 4
	.reloc	., R_X86_64_PLT32, __dtrace_probe_bad___other - 4
	.long	0
#elif defined OVERLAP
	/* Two sites that share three bytes. */
	.byte	0xe8, 0
	.byte	0xe8
	.reloc	. - 2, R_X86_64_PLT32, __dtrace_probe_bad___form - 4
	.reloc	., R_X86_64_PLT32, __dtrace_probe_bad___other - 4
	.long	0
#elif defined JUMPTABLE
	jmpq	*table(,%rdi,8)
	.section .rodata, "a", @progbits
table:	.quad	__dtrace_probe_bad___form
	.previous
#elif defined FIRST
	/* A call's relocation with no byte before it. */
	.section .text.first, "ax", @progbits
	.reloc	0, R_X86_64_PLT32, __dtrace_probe_bad___form - 4
	.long	0
	.previous
#elif defined LAST
	/* A call's relocation that ends behind its section. */
	.section .text.last, "ax", @progbits
	.byte	0xe8
	.reloc	1, R_X86_64_PLT32, __dtrace_probe_bad___form - 4
	.short	0
	.previous
#else
#error "no form named"
#endif
	ret
	.size	bad, . - bad

	.section .note.GNU-stack, "", @progbits
