/*
 * Calls through registers, as -mcmodel=large makes them: each function calls a stub
 * once on each way, so that no register is loaded for two calls. With -DUNGUARDED no
 * stub is an is-enabled test; with -DHIDDEN stubs are as sdt.h declares them.
 */
#ifdef HIDDEN
#pragma GCC visibility push(hidden)
#endif
extern void __dtrace_probe_registers___one(unsigned long);
extern void __dtrace_probe_registers___two(unsigned long, unsigned long);
extern void __dtrace_probe_registers___none(void);
extern int __dtrace_isenabled_registers___one(void);
#ifdef HIDDEN
#pragma GCC visibility pop
#endif
extern int registers_work(int);

int registers_plain(int a)
{
	__dtrace_probe_registers___one(a);
	return a + 1;
}

int registers_test(int a)
{
#ifndef UNGUARDED
	if (__dtrace_isenabled_registers___one())
#endif
		__dtrace_probe_registers___two(a, registers_work(a));
	return a * 2;
}

int registers_ways(int a)
{
	if (a > 3)
		__dtrace_probe_registers___none();
	else
		__dtrace_probe_registers___one(registers_work(a));
	return a * 3;
}

int registers_switch(int a)
{
	switch (a) {
	case 0: __dtrace_probe_registers___one(7); return registers_work(1);
	case 1: registers_work(3); __dtrace_probe_registers___two(9, a); break;
	case 2: return 4;
	case 3: __dtrace_probe_registers___none(); a += registers_work(8); break;
	case 4: a = registers_work(2);
	case 5: return a * 5;
	}
	return a;
}

double registers_float(double d, int a)
{
	d *= a;
	__dtrace_probe_registers___two((unsigned long)d, a);
	return d + 1;
}

void registers_tail(int a)
{
	__dtrace_probe_registers___one(a);
}
