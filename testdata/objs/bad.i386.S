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
	leal	__dtrace_probe_bad___form@GOTOFF(%ebx), %eax
#elif defined MOVGOT
	movl	__dtrace_probe_bad___form@GOT(%ebx), %eax
	call	*%eax
#elif defined MOVIMM
	movl	$__dtrace_probe_bad___form, %eax
#elif defined PUSHIMM
	pushl	$__dtrace_probe_bad___form
#elif defined PUSHGOT
	pushl	__dtrace_probe_bad___form@GOT(%ebx)
#elif defined CMPGOT
	cmpl	__dtrace_probe_bad___form@GOT(%ebx), %eax
#elif defined SIBGOT
	call	*__dtrace_probe_bad___form@GOT(%ebx,%ecx,4)
#elif defined PLUS4
	call	__dtrace_probe_bad___form + 4
#elif defined PREL
	.long	__dtrace_probe_bad___form - .
#elif defined LOOP
	loop	__dtrace_probe_bad___form
#elif defined SHORT
	.byte	0xeb
	.reloc	., R_386_PC8, __dtrace_probe_bad___form
	.byte	-1
#elif defined WORD
	/* A jump of 16-bit code. */
	.byte	0x66, 0xe9
	.reloc	., R_386_PC16, __dtrace_probe_bad___form
	.short	-2
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.byte	0x90
	.reloc	., R_386_PLT32, __dtrace_probe_bad___form
	.long	-4
#elif defined TWICE
	/* Two relocations on one site. */
	.byte	0xe8
	.reloc	., R_386_PC32, __dtrace_probe_bad___form
	.reloc	., R_386_PC32, __dtrace_probe_bad___other
	.long	-4
#elif defined OVERLAP
	/* Two sites that share three bytes. */
	.byte	0xe8, 0xfc, 0xe8, 0xfc, 0xff, 0xff, 0xff, 0xff
	.reloc	. - 7, R_386_PC32, __dtrace_probe_bad___form
	.reloc	. - 5, R_386_PC32, __dtrace_probe_bad___other
#elif defined JUMPTABLE
	jmp	*table(,%eax,4)
	.section .rodata, "a", @progbits
table:	.long	__dtrace_probe_bad___form
	.previous
#elif defined FIRST
	/* A call's relocation with no byte before it. */
	.section .text.first, "ax", @progbits
	.reloc	0, R_386_PLT32, __dtrace_probe_bad___form
	.long	-4
	.previous
#elif defined LAST
	/* A call's relocation that ends behind its section. */
	.section .text.last, "ax", @progbits
	.byte	0xe8
	.reloc	1, R_386_PLT32, __dtrace_probe_bad___form
	.short	0
	.previous
#else
#error "no form named"
#endif
	ret
	.size	bad, . - bad

	.section .note.GNU-stack, "", @progbits
