/*
 * Every form of a site that arm64 objects hold, once each, with the probe and
 * with the is-enabled test: call and tail call.
 */
	.text
	.globl	forms_call
	.type	forms_call, %function
forms_call:
	stp	x29, x30, [sp, #-16]!
	bl	__dtrace_probe_forms___call
	bl	__dtrace_isenabled_forms___call
	ldp	x29, x30, [sp], #16
	ret
	.size	forms_call, . - forms_call

	.globl	forms_tail
	.type	forms_tail, %function
forms_tail:
	b	__dtrace_probe_forms___tail
	.size	forms_tail, . - forms_tail

	.globl	forms_tail_test
	.type	forms_tail_test, %function
forms_tail_test:
	b	__dtrace_isenabled_forms___tail
	.size	forms_tail_test, . - forms_tail_test

	.section .text.own, "ax", %progbits
	.globl	forms_own
	.type	forms_own, %function
forms_own:
	cbz	w0, 1f
	b	__dtrace_isenabled_forms___own
1:	b	__dtrace_probe_forms___own
	.size	forms_own, . - forms_own

	.section .note.GNU-stack, "", %progbits
