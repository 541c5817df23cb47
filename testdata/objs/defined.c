/*
 * Stubs that the object defines itself, as a kernel's stub file or `ld -r`
 * with stubs leaves them: global, weak, and one that stays undefined beside
 * them. Their sites are converted, the definitions stay.
 *
 * -DLOCAL makes the definitions local: calls between sections then name the
 * section, calls within one have no relocation at all.
 */
#ifdef LOCAL
#define STUB static __attribute__((noinline, used))
#define WEAK_STUB static __attribute__((noinline, used, section(".text.stubs")))
#else
#define STUB __attribute__((noinline))
#define WEAK_STUB __attribute__((weak, noinline))
#endif

STUB void __dtrace_probe_defined___global(int a)
{
	__asm__ volatile("" : : "r"(a));
}

WEAK_STUB void __dtrace_probe_defined___weak(int a)
{
	__asm__ volatile("" : : "r"(a));
}

STUB int __dtrace_isenabled_defined___global(void)
{
	int v;

	__asm__ volatile("" : "=r"(v) : "0"(0));
	return v;
}

extern void __dtrace_probe_defined___not(int);

volatile int defined_sink;

int defined_user(int a)
{
	__dtrace_probe_defined___global(a);
	__dtrace_probe_defined___weak(a + 1);
	__dtrace_probe_defined___not(a + 2);
	if (__dtrace_isenabled_defined___global())
		__dtrace_probe_defined___weak(a);
	return a * 3;
}

void defined_tail(int a)
{
	defined_sink = a;
	__dtrace_probe_defined___global(a);
}
