#ifndef HEAD_H
#define HEAD_H
void __dtrace_probe_app___go(int);
int __dtrace_isenabled_app___go(void);
#endif
