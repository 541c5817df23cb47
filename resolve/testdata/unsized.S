/* Exported functions of unknown size, with static ones in between. */
	.text
	.globl described, plain, last
	.type described, %function
	.type static_one, %function
	.type plain, %function
	.type static_two, %function
	.type last, %function
described:
	.cfi_startproc
	nop; nop; nop; nop
	.cfi_endproc
	nop; nop; nop; nop	/* nobody's */
static_one:
	.cfi_startproc
	nop; nop; nop; nop
	.cfi_endproc
plain:
	nop; nop; nop; nop; nop; nop; nop; nop
static_two:
	.cfi_startproc
	nop; nop; nop; nop
	.cfi_endproc
	nop; nop; nop; nop	/* nobody's */
last:
	nop; nop; nop; nop
	.section .note.GNU-stack,"",%progbits
