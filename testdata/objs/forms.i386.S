/*
 * Every form of a site that i386 objects hold, once each, with the probe and
 * with the is-enabled test: call, tail call, the sixteen conditional tail
 * calls, and call and tail call through the GOT, which is in a register or has
 * an address of its own.
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

	.section .text.plt, "ax", @progbits
	.globl	forms_plt
	.type	forms_plt, @function
forms_plt:
	call	__dtrace_probe_forms___plt@PLT
	call	__dtrace_isenabled_forms___plt@PLT
	jmp	__dtrace_probe_forms___plttail@PLT
	.size	forms_plt, . - forms_plt

	.section .text.got, "ax", @progbits
	.globl	forms_got
	.type	forms_got, @function
forms_got:
	.irp	reg, eax, ecx, edx, ebx, ebp, esi, edi
	call	*__dtrace_probe_forms___got_\reg@GOT(%\reg)
	call	*__dtrace_isenabled_forms___got_\reg@GOT(%\reg)
	.endr
	testl	%eax, %eax
	je	1f
	jmp	*__dtrace_probe_forms___gottail@GOT(%ecx)
1:	jmp	*__dtrace_isenabled_forms___gottail@GOT(%edx)
	.size	forms_got, . - forms_got

	.section .text.gotabs, "ax", @progbits
	.globl	forms_gotabs
	.type	forms_gotabs, @function
forms_gotabs:
	call	*__dtrace_probe_forms___gotabs@GOT
	call	*__dtrace_isenabled_forms___gotabs@GOT
	testl	%eax, %eax
	je	1f
	jmp	*__dtrace_probe_forms___gotabstail@GOT
1:	jmp	*__dtrace_isenabled_forms___gotabstail@GOT
	.size	forms_gotabs, . - forms_gotabs

	.section .note.GNU-stack, "", @progbits
