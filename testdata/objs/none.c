/*
 * No probe at all: code, data, a cold part and a weak symbol, and names that
 * come close to a stub's. Converting it changes nothing.
 */
extern int outside(int);
extern int __attribute__((weak)) maybe(int);
extern int dtrace_probe_not(int);
extern int __dtrace_probes(int);

static int counter;
int (*table[2])(int) = { outside, dtrace_probe_not };

int none_call(int a)
{
	counter += a;
	return outside(a) + __dtrace_probes(counter);
}

int none_tail(int a)
{
	return table[a & 1](a);
}

int none_weak(int a)
{
	return maybe ? maybe(a) : 0;
}

__attribute__((cold)) int none_cold(int a)
{
	return outside(a * 3);
}
