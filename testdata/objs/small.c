/*
 * One call, one tail call and one test, for machines that are only told apart.
 */
extern void __dtrace_probe_small___call(int);
extern int __dtrace_isenabled_small___call(void);

int small_call(int a)
{
	if (__dtrace_isenabled_small___call())
		__dtrace_probe_small___call(a);
	return a + 1;
}

void small_tail(int a)
{
	__dtrace_probe_small___call(a);
}
