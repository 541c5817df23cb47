void __dtrace_probe_app___go(int);
void __dtrace_probe_app___end(const char *, long);

int probe(int n)
{
	__dtrace_probe_app___go(n);
	for (int i = 0; i < n; i++)
		__dtrace_probe_app___end("end", i);
	return n;
}
