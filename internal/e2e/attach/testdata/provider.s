# The note of a provider, of which a linker knows no more than that it is one.
	.section .note.usdt,"",%note
	.balign 4
	.4byte 5, 8, 1
	.asciz "prov"
	.balign 4
	.asciz "app"
	.4byte 0
	.section .note.GNU-stack,"",%progbits
