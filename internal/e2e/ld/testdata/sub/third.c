/* An unused member of an archive. */
void __dtrace_probe_app___third(int);

void third(int n)
{
	__dtrace_probe_app___third(n);
	__asm__ volatile("");
}
