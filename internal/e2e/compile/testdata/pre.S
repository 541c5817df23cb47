#if defined __x86_64__
#define CALL call
#elif defined __aarch64__
#define CALL bl
#else
#define CALL call
#endif
	.text
	.globl pre
	.type pre, %function
pre:
	CALL __dtrace_probe_app___pre
	.size pre, . - pre
	.section .note.GNU-stack, "", %progbits
