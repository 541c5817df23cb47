/*
 * What is not loaded and names a stub: the call graph, as clang writes it with
 * -fexperimental-call-graph-section and from profiles, and a call's origin in debug
 * information.
 */
	.text
	.globl	f
	.type	f, @function
f:
	call	__dtrace_probe_notloaded___call
	jmp	g
	.size	f, . - f

	.cg_profile f, __dtrace_probe_notloaded___call, 10
	.cg_profile f, g, 10

	.section .llvm.callgraph, "o", @0x6fff4c0f, .text
	.byte	0		/* version */
	.byte	2		/* has direct callees */
	.quad	f
	.quad	0		/* type */
	.uleb128 2
	.quad	__dtrace_probe_notloaded___call
	.quad	g

	.section .debug_addr, "", @progbits
	.quad	f
	.quad	__dtrace_probe_notloaded___call + 4
	.quad	g

	.section .note.GNU-stack, "", @progbits
