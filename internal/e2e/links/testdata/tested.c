/*
 * Tests of a probe in each form that reaches a stub of is-enabled tests. NAME makes one
 * object's functions differ from another's. What is returned is all of the result.
 */
#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)
#define FUNCTION(f) NAMED(NAME, f)

extern void __dtrace_probe_shop___item(long);
extern int __dtrace_isenabled_shop___item(long);

/* Registers that hold something across the call are still what they were. */
__attribute__((noinline)) long FUNCTION(_call)(long a, long b, long c)
{
	int enabled = __dtrace_isenabled_shop___item(a);

	if (enabled)
		__dtrace_probe_shop___item(a);
	return (a * 3 + b * 5 + c * 7) * 1000000 + enabled;
}

__attribute__((noinline)) int FUNCTION(_tail)(long a)
{
	return __dtrace_isenabled_shop___item(a);
}

__attribute__((noinline)) int FUNCTION(_cond)(long a)
{
	if (a > 3)
		return __dtrace_isenabled_shop___item(a);
	return -1;
}

__attribute__((noinline)) long long FUNCTION(_twice)(long a)
{
	return (long long)__dtrace_isenabled_shop___item(a) * 65536 + __dtrace_isenabled_shop___item(a + 1);
}

#if defined(__x86_64__) && !defined(NO_JCC)
/* A conditional tail call, which gcc makes none of. */
__asm__(".text\n.globl " STRING "_jcc\n.type " STRING "_jcc,@function\n" STRING "_jcc:\n"
	"cmpq $3, %rdi\njg __dtrace_isenabled_shop___item\nmovl $-1, %eax\nret\n.size " STRING "_jcc,.-" STRING "_jcc\n");
#elif defined(__i386__)
__asm__(".text\n.globl " STRING "_jcc\n.type " STRING "_jcc,@function\n" STRING "_jcc:\n"
	"cmpl $3, 4(%esp)\njg __dtrace_isenabled_shop___item\nmovl $-1, %eax\nret\n.size " STRING "_jcc,.-" STRING "_jcc\n");
#else
int FUNCTION(_jcc)(long a)
{
	return FUNCTION(_cond)(a);
}
#endif
