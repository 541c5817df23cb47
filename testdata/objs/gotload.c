/*
 * For -fno-plt (and riscv's -mno-plt): in a loop, and on some machines
 * everywhere, the stub's address is loaded from the GOT into a register and
 * called from there, which no conversion can follow: refused.
 */
extern void __dtrace_probe_gotload___loop(unsigned long);
extern int __dtrace_isenabled_gotload___loop(void);

unsigned long gotload_loop(unsigned long n)
{
	unsigned long i, sum = 0;

	for (i = 0; i < n; i++) {
		__dtrace_probe_gotload___loop(i);
		sum += i;
		__dtrace_probe_gotload___loop(sum);
		if (__dtrace_isenabled_gotload___loop())
			__dtrace_probe_gotload___loop(n);
	}
	return sum;
}
