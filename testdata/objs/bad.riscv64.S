/*
 * Forms that are not sites, one per object: -DJAL and so on. Each object has one
 * good call before the bad reference.
 */
	.text
	.globl	bad
	.type	bad, %function
bad:
	call	__dtrace_probe_bad___good
#if defined JAL
	jal	__dtrace_probe_bad___form
#elif defined J
	j	__dtrace_probe_bad___form
#elif defined BRANCH
	.reloc	., R_RISCV_BRANCH, __dtrace_probe_bad___form
	.word	0x00050063	/* beqz a0, . */
#elif defined LA
	la	a0, __dtrace_probe_bad___form
#elif defined LAGOT
	.option	pic
	la	a0, __dtrace_probe_bad___form
	jalr	a0
#elif defined LUI
	lui	a0, %hi(__dtrace_probe_bad___form)
	jalr	%lo(__dtrace_probe_bad___form)(a0)
#elif defined PLUS4
	call	__dtrace_probe_bad___form + 4
#elif defined PREL
	.word	__dtrace_probe_bad___form - .
#elif defined CALLT0
	/* The return address in t0, as calls of save and restore routines have it. */
	call	t0, __dtrace_probe_bad___form
#elif defined JUMPT2
	/* A jump through another register than the tail call's t1. */
	jump	__dtrace_probe_bad___form, t2
#elif defined OPCODE
	/* A call's relocation where no call is. */
	.reloc	., R_RISCV_CALL_PLT, __dtrace_probe_bad___form
	.option	norvc
	nop
	nop
#elif defined SPLIT
	/* An auipc whose jalr uses another register. */
	.reloc	., R_RISCV_CALL_PLT, __dtrace_probe_bad___form
	.word	0x00000097	/* auipc ra, 0 */
	.word	0x000300e7	/* jalr  ra, 0(t1) */
#elif defined LAST
	/* A call's relocation whose second half is missing. */
	.section .text.last, "ax", %progbits
	.reloc	., R_RISCV_CALL_PLT, __dtrace_probe_bad___form
	.word	0x00000097	/* auipc ra, 0 */
	.previous
#else
#error "no form named"
#endif
	ret
	.size	bad, . - bad

	.section .note.GNU-stack, "", %progbits
