/*
 * For -mcmodel=large, where a call goes through a register.
 */
extern void __dtrace_probe_large___call(int);
extern int __dtrace_isenabled_large___call(void);

int large_call(int a)
{
	__dtrace_probe_large___call(a);
	return a + 1;
}

int large_test(void)
{
	return __dtrace_isenabled_large___call();
}
