/*
 * For -mfunction-return=thunk-extern, where every return is a jump to
 * __x86_return_thunk: tail calls of probes and of is-enabled tests.
 *
 * -DTAILS_ONLY leaves only functions that end in a tail call, so that nothing
 * in the object names the thunk.
 */
extern void __dtrace_probe_thunk___tail(int);
extern void __dtrace_probe_thunk___cond(int);
extern int __dtrace_isenabled_thunk___value(void);

volatile int thunk_sink;

void thunk_tail(int a)
{
	thunk_sink = a;
	__dtrace_probe_thunk___tail(a);
}

int thunk_value(void)
{
	return __dtrace_isenabled_thunk___value();
}

int thunk_value_too(int a)
{
	thunk_sink = a;
	return __dtrace_isenabled_thunk___value();
}

#ifndef TAILS_ONLY
int thunk_call(int a)
{
	__dtrace_probe_thunk___tail(a);
	if (__dtrace_isenabled_thunk___value())
		return a;
	return a + 1;
}

void thunk_cond(int a)
{
	if (a)
		__dtrace_probe_thunk___cond(a);
}

int thunk_cond_value(int a)
{
	if (a)
		return __dtrace_isenabled_thunk___value();
	return 6;
}
#endif
