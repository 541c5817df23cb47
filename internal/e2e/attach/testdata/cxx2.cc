#include "app.h"

long app_other(int n)
{
	auto lambda = [](int m) { DTRACE_PROBE2(app___generic, long, 10 * m, const char *, app_text); return m; };
	return app_class<int>::method(-n) + app_inline(n + 1) + lambda(n);
}

long app_unused(int n) { return app_class<long>::method(n) + app_inline(n); }
