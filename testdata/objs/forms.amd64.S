/*
 * Every form of a site that amd64 objects hold, once each, with the probe and
 * with the is-enabled test: call, tail call, the sixteen conditional tail
 * calls, and call and tail call through the GOT.
 *
 * -DPC32 adds direct calls with R_X86_64_PC32, as assemblers before 2.31 wrote.
 */
	.text
	.globl	forms_call
	.type	forms_call, @function
forms_call:
	call	__dtrace_probe_forms___call
	call	__dtrace_isenabled_forms___call
	ret
	.size	forms_call, . - forms_call

	.globl	forms_tail
	.type	forms_tail, @function
forms_tail:
	jmp	__dtrace_probe_forms___tail
	.size	forms_tail, . - forms_tail

	.globl	forms_tail_test
	.type	forms_tail_test, @function
forms_tail_test:
	jmp	__dtrace_isenabled_forms___tail
	.size	forms_tail_test, . - forms_tail_test

	.globl	forms_cond
	.type	forms_cond, @function
forms_cond:
	.irp	cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	j\cc	__dtrace_probe_forms___\cc
	.endr
	ret
	.size	forms_cond, . - forms_cond

	.globl	forms_cond_test
	.type	forms_cond_test, @function
forms_cond_test:
	.irp	cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	j\cc	__dtrace_isenabled_forms___\cc
	.endr
	ret
	.size	forms_cond_test, . - forms_cond_test

	.section .text.got, "ax", @progbits
	.globl	forms_got
	.type	forms_got, @function
forms_got:
	call	*__dtrace_probe_forms___got@GOTPCREL(%rip)
	call	*__dtrace_isenabled_forms___got@GOTPCREL(%rip)
	testl	%eax, %eax
	je	1f
	jmp	*__dtrace_probe_forms___gottail@GOTPCREL(%rip)
1:	jmp	*__dtrace_isenabled_forms___gottail@GOTPCREL(%rip)
	.size	forms_got, . - forms_got

#ifdef PC32
	.section .text.pc32, "ax", @progbits
	.globl	forms_pc32
	.type	forms_pc32, @function
forms_pc32:
	.byte	0xe8
	.reloc	., R_X86_64_PC32, __dtrace_probe_forms___pc32 - 4
	.long	0
	.byte	0xe9
	.reloc	., R_X86_64_PC32, __dtrace_isenabled_forms___pc32 - 4
	.long	0
	.size	forms_pc32, . - forms_pc32
#endif

	.section .note.GNU-stack, "", @progbits
