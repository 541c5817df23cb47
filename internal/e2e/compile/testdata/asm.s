	.text
	.globl asm
	.type asm, %function
asm:
	call __dtrace_probe_app___asm
	.size asm, . - asm
	.section .note.GNU-stack, "", %progbits
