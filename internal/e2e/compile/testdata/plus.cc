extern "C" void __dtrace_probe_app___plus(int);

template <class T> void plus(T n) { __dtrace_probe_app___plus(n); }
template void plus(int);
