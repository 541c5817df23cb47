/*
 * A stub's address is taken, which no conversion can follow: refused.
 * -DIN_DATA puts it into a table, -DIN_CODE into a register.
 */
extern void __dtrace_probe_address___taken(int);
extern int __dtrace_isenabled_address___taken(void);

int address_user(int a)
{
	__dtrace_probe_address___taken(a);
	return a;
}

#ifdef IN_DATA
void (*address_table[2])(int) = { 0, __dtrace_probe_address___taken };
int (*const address_test)(void) = __dtrace_isenabled_address___taken;
#endif

#ifdef IN_CODE
extern void use(void (*)(int), int (*)(void));

void address_give(void)
{
	use(__dtrace_probe_address___taken, __dtrace_isenabled_address___taken);
}
#endif
