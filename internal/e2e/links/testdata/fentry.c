/*
 * Runs none.c, whose calls of __fentry__ are probes: the probe object, what
 * none.c calls, and a main that returns 0 when all is well.
 */
char sdt___fentry__[96] = { 96 };
extern const char __start_sdt_instances_set[] __attribute__((weak));
const char *fentry_records = __start_sdt_instances_set;

int none_call(int a);
int none_tail(int a);
int none_weak(int a);
int none_cold(int a);

int outside(int a)
{
	return a + 1;
}

int dtrace_probe_not(int a)
{
	return a + 2;
}

int __dtrace_probes(int a)
{
	return a + 3;
}

int main(void)
{
	return !(none_call(4) == 5 + 7 && none_tail(2) == 3 && none_tail(3) == 5 &&
	    none_weak(9) == 0 && none_cold(2) == 7);
}
