/*
 * Calls through registers, of the large code model and, as GOT..., through the global offset
 * table, one form per object: -DPLT and so on. The first of both are converted. The others
 * are refused, because the register may hold something else at the call, or is used elsewhere.
 */
#define STUB	__dtrace_probe_flow___form
#define OTHER	__dtrace_probe_flow___other

	.text
	.globl	flow
	.type	flow, @function
flow:
	subq	$8, %rsp
#if defined PLT
	movabsq	$STUB@PLTOFF, %rax
	movl	$1, %edi
	addq	%r15, %rax
	call	*%rax
#elif defined PLTLEA
	movabsq	$STUB@PLTOFF, %r11
	leaq	(%r11,%r15), %r10
	call	*%r10
#elif defined SLOT
	movabsq	$STUB@GOT, %rax
	movq	(%r15,%rax), %rcx
	movl	$1, %edi
	call	*%rcx
#elif defined SLOTJUMP
	movabsq	$STUB@GOT, %rax
	addq	$8, %rsp
	jmp	*(%rax,%r15)
#elif defined LOOPBACK
	/* A jump to the movabs loads the register again. */
1:	movabsq	$STUB, %rax
	call	*%rax
	jmp	1b
#elif defined AVX
	/* What is decoded by its length alone has no short jumps in it. */
	vmovdqa64 0x70(%rsp), %zmm1
	vpshufd	$0xeb, %ymm1, %ymm2
	vpternlogd $0x75, %zmm1, %zmm2, %zmm3
	movabsq	$STUB, %rax
	call	*%rax
	vzeroupper
#elif defined BASE
	/* The address of the global offset table is made of a place in the function. */
	movabsq	$STUB@PLTOFF, %rax
1:	leaq	1b(%rip), %r15
	movabsq	$_GLOBAL_OFFSET_TABLE_ - 1b, %r11
	addq	%r11, %r15
	addq	%r15, %rax
	call	*%rax
#elif defined TABLE
	/* Distances from a table that go to other places. */
	leaq	table(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rcx
	addq	%rdx, %rcx
	jmp	*%rcx
1:	movabsq	$STUB, %rax
	call	*%rax
2:	nop
	nop
3:	nop
	.section .rodata, "a", @progbits
	.long	0
table:	.long	1b - table, 2b - table, 3b - table
	.previous
#elif defined CALLEESAVED
	movabsq	$STUB, %rbx
	call	*%rbx
#elif defined STACKED
	movabsq	$STUB, %rax
	movq	%rax, (%rsp)
	call	*%rax
#elif defined USED
	movabsq	$STUB, %rax
	cmpq	%rdi, %rax
	call	*%rax
#elif defined PART
	movabsq	$STUB, %rax
	movb	$1, %ah
	call	*%rax
#elif defined IMPLICIT
	movabsq	$STUB, %rax
	mulq	%rcx
	call	*%rax
#elif defined CPUID
	movabsq	$STUB, %rdx
	cpuid
	call	*%rdx
#elif defined OVERWRITTEN
	movabsq	$STUB, %rax
	movabsq	$OTHER, %rax
	call	*%rax
#elif defined TWOADDS
	movabsq	$STUB@PLTOFF, %rax
	addq	%r15, %rax
	addq	%r14, %rax
	call	*%rax
#elif defined NOADD
	movabsq	$STUB@PLTOFF, %rax
	call	*%rax
#elif defined SLOTITSELF
	movabsq	$STUB@GOT, %rax
	call	*8(%r15,%rax)
#elif defined SCALED
	movabsq	$STUB@GOT, %rax
	call	*(%r15,%rax,2)
#elif defined SEGMENT
	movabsq	$STUB@GOT, %rax
	movq	%fs:(%r15,%rax), %rax
	call	*%rax
#elif defined NOTRACK
	movabsq	$STUB, %rax
	notrack jmp *%rax
#elif defined PLUS8
	movabsq	$STUB + 8, %rax
	call	*%rax
#elif defined CALLBETWEEN
	movabsq	$STUB, %r11
	call	other
	call	*%r11
#elif defined MERGED
	/* Two loads and one call. */
	testl	%edi, %edi
	je	1f
	movabsq	$STUB@PLTOFF, %rax
	jmp	2f
1:	movabsq	$OTHER@PLTOFF, %rax
2:	addq	%r15, %rax
	call	*%rax
#elif defined FALLS
	/* The same, and one of them has no jump. */
	movabsq	$OTHER@PLTOFF, %rax
	testl	%edi, %edi
	je	1f
	movabsq	$STUB@PLTOFF, %rax
1:	addq	%r15, %rax
	call	*%rax
#elif defined LATER
	/* The jump is behind the call. */
	movabsq	$STUB, %rax
1:	call	*%rax
	movq	other(%rip), %rax
	testl	%eax, %eax
	jne	1b
#elif defined FAR
	movabsq	$STUB, %rax
1:	call	*%rax
	.skip	200, 0x90
	movq	other(%rip), %rax
	jmp	1b
#elif defined LOOPED
	movabsq	$STUB, %rax
1:	call	*%rax
	movq	other(%rip), %rax
	loop	1b
#elif defined UNDECODED
	/* An instruction that is not known may hide a jump. */
	movabsq	$STUB, %rax
1:	call	*%rax
	.byte	0xd5, 0x11, 0x01, 0xf8
	movq	other(%rip), %rax
	jmp	1b
#elif defined COLD
	/* The jump is in another section, with a relocation. */
	movabsq	$STUB, %rax
1:	call	*%rax
	.section .text.unlikely, "ax", @progbits
	movq	other(%rip), %rax
	jmp	1b
	.previous
#elif defined LABELLED
	/* A symbol, for any user. */
	movabsq	$STUB, %rax
inside:	call	*%rax
#elif defined ADDRESSES
	movabsq	$STUB, %rax
1:	call	*%rax
	.section .data.rel.ro, "aw", @progbits
	.quad	1b
	.previous
#elif defined DISTANCES
	leaq	table(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rcx
	addq	%rdx, %rcx
	jmp	*%rcx
	movabsq	$STUB, %rax
1:	call	*%rax
2:	nop
	.section .rodata, "a", @progbits
	.long	0
table:	.long	2b - table, 1b - table, 2b - table
	.previous
#elif defined FOREIGNTABLE
	/* No reference to the table is seen: it may begin with any of its words. */
	movabsq	$STUB, %rax
1:	call	*%rax
2:	nop
	.section .rodata, "a", @progbits
.Ltable:
	.long	2b - .Ltable, 1b - .Ltable
	.previous
#elif defined GOTO
	/* What is told by its distance from an address that is taken has no relocation. */
	leaq	2f(%rip), %rdx
	movslq	%edi, %rdi
	addq	%rdi, %rdx
	jmp	*%rdx
	movabsq	$STUB, %rax
	call	*%rax
2:	nop
#elif defined GOTOABS
	movabsq	$2f, %rdx
	addq	%rdi, %rdx
	jmp	*%rdx
	movabsq	$STUB, %rax
	call	*%rax
2:	nop
#elif defined DEFINED
	movabsq	$STUB, %rax
	call	*%rax
	addq	$8, %rsp
	ret
	.globl	STUB
	.type	STUB, @function
STUB:
	subq	$8, %rsp
#elif defined CUT
	movabsq	$STUB, %rax
#define NORETURN
#elif defined GOTLOOP
	/* One load before a loop, with padding, and two calls in it. */
	pushq	%rbx
	movq	STUB@GOTPCREL(%rip), %rbx
	jmp	2f
	.balign	16
1:	movl	$1, %edi
	call	*%rbx
2:	call	*%rbx
	testl	%eax, %eax
	jne	1b
	popq	%rbx
#elif defined GOTWAYS
	/* Two loads, on two ways to one call, and a copy. */
	testl	%edi, %edi
	je	1f
	movq	STUB@GOTPCREL(%rip), %rax
	jmp	2f
1:	movq	STUB@GOTPCREL(%rip), %rcx
	movq	%rcx, %rax
2:	call	*%rax
#elif defined GOTTEST
	pushq	%rbx
	movq	__dtrace_isenabled_flow___form@GOTPCREL(%rip), %rbx
	call	*%rbx
	testl	%eax, %eax
	je	1f
	call	*%rbx
1:	popq	%rbx
#elif defined GOTOTHERWAY
	/* One way brings something else. */
	movq	%rsi, %rax
	testl	%edi, %edi
	je	1f
	movq	STUB@GOTPCREL(%rip), %rax
1:	call	*%rax
#elif defined GOTPASSED
	movq	STUB@GOTPCREL(%rip), %rax
	movq	%rax, %rdi
	call	*%rax
	movq	STUB@GOTPCREL(%rip), %rdi
	call	other
#elif defined GOTRETURNED
	movq	STUB@GOTPCREL(%rip), %rax
	testl	%edi, %edi
	je	1f
	call	*%rax
1:
#elif defined GOTPAD
	/* On a landing pad the register may hold what it held at another call. */
	pushq	%rbx
	movq	%rdi, %rbx
	call	other
	movq	STUB@GOTPCREL(%rip), %rbx
	call	*%rbx
	popq	%rbx
	.section .gcc_except_table, "a", @progbits
	.long	0
	.previous
#elif defined GOTCOUNTED
	movq	STUB@GOTPCREL(%rip), %rcx
1:	nop
	loop	1b
	call	*%rcx
#else
#error "no form named"
#endif
#ifndef NORETURN
	addq	$8, %rsp
	ret
#endif
	.size	flow, . - flow

	.section .note.GNU-stack, "", @progbits
