/*
 * Every form of a site that loong64 objects hold, once each, with the probe
 * and with the is-enabled test: bl and b, and the pairs of the medium code
 * model through the registers of clang and of gcc, with R_LARCH_RELAX and
 * without, aligned and not.
 */
	.macro	both
	bl	__dtrace_probe_forms___call
	bl	__dtrace_isenabled_forms___call
	.endm
	.macro	far link, register, stub
	pcaddu18i	\register, %call36(\stub)
	jirl	\link, \register, 0
	.endm
	.macro	relaxed link, register, stub
	far	\link, \register, \stub
	.reloc	. - 8, R_LARCH_RELAX
	.endm

	.text
	.globl	forms_call
	.type	forms_call, @function
forms_call:
	addi.d	$sp, $sp, -16
	st.d	$ra, $sp, 8
	both
	.p2align 4
	both
	ld.d	$ra, $sp, 8
	addi.d	$sp, $sp, 16
	ret
	.size	forms_call, . - forms_call

	.globl	forms_tail
	.type	forms_tail, @function
forms_tail:
	b	__dtrace_probe_forms___tail
	.size	forms_tail, . - forms_tail

	.globl	forms_tail_test
	.type	forms_tail_test, @function
forms_tail_test:
	b	__dtrace_isenabled_forms___tail
	.size	forms_tail_test, . - forms_tail_test

	.section .text.medium, "ax", @progbits
	.globl	forms_medium
	.type	forms_medium, @function
forms_medium:
	addi.d	$sp, $sp, -16
	st.d	$ra, $sp, 8
	far	$ra, $ra, __dtrace_probe_forms___call
	far	$ra, $ra, __dtrace_isenabled_forms___call
	relaxed	$ra, $ra, __dtrace_probe_forms___call
	relaxed	$ra, $ra, __dtrace_isenabled_forms___call
	ld.d	$ra, $sp, 8
	addi.d	$sp, $sp, 16
	beqz	$a0, 1f
	bnez	$a1, 2f
	beqz	$a2, 3f
	far	$zero, $t8, __dtrace_probe_forms___tail
1:	far	$zero, $t0, __dtrace_isenabled_forms___tail
2:	relaxed	$zero, $t8, __dtrace_isenabled_forms___tail
3:	relaxed	$zero, $t0, __dtrace_probe_forms___tail
	.size	forms_medium, . - forms_medium

	.section .note.GNU-stack, "", @progbits
