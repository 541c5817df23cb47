/* A probe behind a test of it, and one without a test. */
extern void __dtrace_probe_shop___item(long), __dtrace_probe_shop___idle(long);
extern int __dtrace_isenabled_shop___item(void);

char sdt_shop___item[8] __attribute__((aligned(8)));
char sdt_shop___idle[8] __attribute__((aligned(8)));

int guarded(long n)
{
	__dtrace_probe_shop___idle(n);
	if (!__dtrace_isenabled_shop___item())
		return 0;
	__dtrace_probe_shop___item(n);
	return 1;
}
