/* A probe in an uncalled function: it goes with --gc-sections. */
extern void __dtrace_probe_dead___only(int);

void dead_function(int a);
void dead_function(int a)
{
	__dtrace_probe_dead___only(a);
}
