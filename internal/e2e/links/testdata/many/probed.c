/* One of many objects, with probes. UNIT begins each global name. */
#define JOINED(a, b) a##_##b
#define JOIN(a, b) JOINED(a, b)
#define NAME(name) JOIN(UNIT, name)

void __dtrace_probe_many___start(unsigned long);
void __dtrace_probe_many___step(unsigned long, long);
void __dtrace_probe_many___odd(long);
int __dtrace_isenabled_many___odd(void);

long NAME(run)(long n);
long NAME(set_up)(long n);

/* Each object has functions of these names. */
static __attribute__((noinline)) void step(unsigned long i, long n)
{
	__dtrace_probe_many___step(i, n);
}

static __attribute__((noinline, cold)) long odd(long n)
{
	if (__dtrace_isenabled_many___odd())
		__dtrace_probe_many___odd(n);
	return n + 1;
}

long NAME(run)(long n)
{
	long i;

	__dtrace_probe_many___start((unsigned long)n);
	for (i = 0; i < n; i++)
		step((unsigned long)i, n);
	return n % 2 ? odd(n) : n;
}

__attribute__((section(".init.text"))) long NAME(set_up)(long n)
{
	__dtrace_probe_many___start(0);
	__dtrace_probe_many___step(0, n);
	return n;
}
