/*
 * Every form of a site that objects of 64-bit PowerPC hold, once each, with the
 * probe and with the is-enabled test: calls with and without a slot for the
 * pointer to the table of contents, of code for power10, and tail calls.
 */
#if _CALL_ELF == 2
#define FUNCTION(name) .globl name; .type name, @function; name: .localentry name, 1
#define CODE(name) name
	.abiversion 2
#else
#define FUNCTION(name) .section .opd, "aw"; .p2align 3; .globl name; .type name, @function; \
name: .quad .L.name, .TOC.@tocbase, 0; .previous; .L.name:
#define CODE(name) .L.name
#endif
	.text
FUNCTION(forms_call)
	mflr	0
	std	0, 16(1)
	stdu	1, -112(1)
	bl	__dtrace_probe_forms___call
	nop
	bl	__dtrace_isenabled_forms___call
	nop
	bl	__dtrace_probe_forms___call
	bl	__dtrace_isenabled_forms___call
	addi	1, 1, 112
	ld	0, 16(1)
	mtlr	0
	blr
	.size	forms_call, . - CODE(forms_call)

FUNCTION(forms_tail)
	b	__dtrace_probe_forms___tail
	.size	forms_tail, . - CODE(forms_tail)

FUNCTION(forms_tail_test)
	b	__dtrace_isenabled_forms___tail
	.size	forms_tail_test, . - CODE(forms_tail_test)

#if _CALL_ELF == 2
	.section .text.notoc, "ax", @progbits
	.p2align 2
FUNCTION(forms_notoc)
	mflr	0
	std	0, 16(1)
	stdu	1, -32(1)
	bl	__dtrace_probe_forms___call@notoc
	bl	__dtrace_isenabled_forms___call@notoc
	addi	1, 1, 32
	ld	0, 16(1)
	mtlr	0
	cmpwi	3, 0
	bne	1f
	b	__dtrace_isenabled_forms___tail@notoc
1:	b	__dtrace_probe_forms___tail@notoc
	.size	forms_notoc, . - forms_notoc
#endif

	.section .note.GNU-stack, "", @progbits
