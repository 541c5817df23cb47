int __real_which(void) __attribute__((weak));
__attribute__((used, section("ids"))) static const int id = 0;

void __dtrace_probe_app___wrapped(void);

int __wrap_which(void)
{
	__dtrace_probe_app___wrapped();
	return 100000 + __real_which();
}
