/*
 * Every form of a site that riscv64 objects hold, once each, with the probe
 * and with the is-enabled test: call and tail call, with R_RISCV_RELAX and
 * without, aligned and not.
 */
	.macro	both
	call	__dtrace_probe_forms___call
	call	__dtrace_isenabled_forms___call
	.endm

	.text
	.globl	forms_call
	.type	forms_call, %function
forms_call:
	addi	sp, sp, -16
	sd	ra, 8(sp)
	both
	.p2align 4
	both
	ld	ra, 8(sp)
	addi	sp, sp, 16
	ret
	.size	forms_call, . - forms_call

	.globl	forms_tail
	.type	forms_tail, %function
forms_tail:
	tail	__dtrace_probe_forms___tail
	.size	forms_tail, . - forms_tail

	.globl	forms_tail_test
	.type	forms_tail_test, %function
forms_tail_test:
	tail	__dtrace_isenabled_forms___tail
	.size	forms_tail_test, . - forms_tail_test

	.section .text.norelax, "ax", %progbits
	.option	norelax
	.globl	forms_norelax
	.type	forms_norelax, %function
forms_norelax:
	addi	sp, sp, -16
	sd	ra, 8(sp)
	both
	ld	ra, 8(sp)
	addi	sp, sp, 16
	beqz	a0, 1f
	tail	__dtrace_probe_forms___tail
1:	tail	__dtrace_isenabled_forms___tail
	.size	forms_norelax, . - forms_norelax

	.section .note.GNU-stack, "", %progbits
