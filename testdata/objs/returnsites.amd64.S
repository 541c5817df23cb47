/*
 * Tail calls in an object that objtool has seen: jumps to __x86_return_thunk,
 * listed in .return_sites, where a converter has to list its own.
 */
	.text
	.globl	returnsites_tail
	.type	returnsites_tail, @function
returnsites_tail:
	testl	%edi, %edi
	je	.Lreturn
	jmp	__dtrace_probe_returnsites___tail
.Lreturn:
	jmp	__x86_return_thunk
	.size	returnsites_tail, . - returnsites_tail

	.globl	returnsites_test
	.type	returnsites_test, @function
returnsites_test:
	jmp	__dtrace_isenabled_returnsites___tail
	.size	returnsites_test, . - returnsites_test

	.globl	returnsites_cond
	.type	returnsites_cond, @function
returnsites_cond:
	call	__dtrace_probe_returnsites___call
	testl	%edi, %edi
	jne	__dtrace_probe_returnsites___cond
.Lreturn2:
	jmp	__x86_return_thunk
	.size	returnsites_cond, . - returnsites_cond

	.section .return_sites, "a", @progbits
	.long	.Lreturn - .
	.long	.Lreturn2 - .

	.section .note.GNU-stack, "", @progbits
