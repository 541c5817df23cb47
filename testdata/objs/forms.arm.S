/*
 * Every form of a site that arm objects hold, once each, with the probe and with
 * the is-enabled test: calls and tail calls of A32 with all conditions, those of
 * Thumb, also in IT blocks, and conditional tail calls of Thumb.
 */
	.syntax unified
	.arch	armv7-a
	.text
	.arm
	.globl	forms_call
	.type	forms_call, %function
forms_call:
	push	{r4, lr}
	bl	__dtrace_probe_forms___call
	bl	__dtrace_isenabled_forms___call
	blx	__dtrace_probe_forms___call
	pop	{r4, pc}
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

	.globl	forms_cond
	.type	forms_cond, %function
forms_cond:
	.irp	cc, eq, ne, cs, cc, mi, pl, vs, vc, hi, ls, ge, lt, gt, le
	bl\cc	__dtrace_probe_forms___\cc
	bl\cc	__dtrace_isenabled_forms___\cc
	b\cc	__dtrace_probe_forms___\cc
	b\cc	__dtrace_isenabled_forms___\cc
	.endr
	bx	lr
	.size	forms_cond, . - forms_cond

	.section .text.thumb, "ax", %progbits
	.thumb
	.globl	thumb_call
	.type	thumb_call, %function
thumb_call:
	push	{r4, lr}
	bl	__dtrace_probe_forms___thumb
	bl	__dtrace_isenabled_forms___thumb
	blx	__dtrace_probe_forms___thumb
	cmp	r0, #0
	itt	ne
	movne	r0, r4
	blne	__dtrace_probe_forms___it
	it	eq
	bleq	__dtrace_isenabled_forms___it
	pop	{r4, pc}
	.size	thumb_call, . - thumb_call

	.globl	thumb_tail
	.type	thumb_tail, %function
thumb_tail:
	cmp	r0, #0
	it	eq
	beq.w	__dtrace_probe_forms___ittail
	ittt	mi
	movmi	r1, #1
	movwmi	r0, #513
	bmi.w	__dtrace_isenabled_forms___ittail
	b.w	__dtrace_probe_forms___thumbtail
	.size	thumb_tail, . - thumb_tail

	.globl	thumb_tail_test
	.type	thumb_tail_test, %function
thumb_tail_test:
	cbz	r0, 1f
	ldr	r1, [r0]
	ldr	r2, [r0, #4]
	str	r1, [r0, #4]
	str	r2, [r0, #8]
	movs	r3, #0
	movs	r2, #0
	b.w	__dtrace_isenabled_forms___thumbtail
1:	bx	lr
	.size	thumb_tail_test, . - thumb_tail_test

	/* In a section of its own: the IT block of a test above is as far as it can be. */
	.section .text.thumbcond, "ax", %progbits
	.globl	thumb_cond
	.type	thumb_cond, %function
thumb_cond:
	.irp	cc, eq, ne, cs, cc, mi, pl, vs, vc, hi, ls, ge, lt, gt, le
	.reloc	., R_ARM_THM_JUMP19, __dtrace_probe_forms___\cc
	b\cc\().w .
	.endr
	bx	lr
	.size	thumb_cond, . - thumb_cond

	.section .note.GNU-stack, "", %progbits
