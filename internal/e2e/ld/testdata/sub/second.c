void __dtrace_probe_app___second(int);

void second(int n)
{
	__dtrace_probe_app___second(n);
	__asm__ volatile("");
}
