void __dtrace_probe_app___go(int);

void *refused[] = { __dtrace_probe_app___go };
