/*
 * Every form of a site that s390x objects hold, once each, with the probe and
 * with the is-enabled test: call, tail call and the fourteen conditional tail
 * calls, through the PLT and not; and the probe call before a prologue, which
 * has another link register.
 */
	.text
	.globl	forms_call
	.type	forms_call, @function
forms_call:
	stmg	%r14, %r15, 112(%r15)
	aghi	%r15, -160
	brasl	%r14, __dtrace_probe_forms___call@PLT
	brasl	%r14, __dtrace_isenabled_forms___call@PLT
	lmg	%r14, %r15, 272(%r15)
	br	%r14
	.size	forms_call, . - forms_call

	.globl	forms_tail
	.type	forms_tail, @function
forms_tail:
	jg	__dtrace_probe_forms___tail@PLT
	.size	forms_tail, . - forms_tail

	.globl	forms_tail_test
	.type	forms_tail_test, @function
forms_tail_test:
	jg	__dtrace_isenabled_forms___tail@PLT
	.size	forms_tail_test, . - forms_tail_test

	.globl	forms_cond
	.type	forms_cond, @function
forms_cond:
	.irp	cc, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
	brcl	\cc, __dtrace_probe_forms___\cc\()@PLT
	.endr
	br	%r14
	.size	forms_cond, . - forms_cond

	.globl	forms_cond_test
	.type	forms_cond_test, @function
forms_cond_test:
	.irp	cc, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
	brcl	\cc, __dtrace_isenabled_forms___\cc\()@PLT
	.endr
	br	%r14
	.size	forms_cond_test, . - forms_cond_test

	.section .text.noplt, "ax", @progbits
	.globl	forms_noplt
	.type	forms_noplt, @function
forms_noplt:
	brasl	%r0, __dtrace_probe_forms___call
	stmg	%r14, %r15, 112(%r15)
	aghi	%r15, -160
	brasl	%r14, __dtrace_probe_forms___call
	brasl	%r14, __dtrace_isenabled_forms___call
	lmg	%r14, %r15, 272(%r15)
	ltgr	%r2, %r2
	jgne	__dtrace_probe_forms___tail
	jg	__dtrace_isenabled_forms___tail
	.size	forms_noplt, . - forms_noplt

	.section .note.GNU-stack, "", @progbits
