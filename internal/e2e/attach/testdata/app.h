#include <sdt.h>

DTRACE_PROBE_DECLARE(app___done);
DTRACE_PROBE_DECLARE(app___generic);

#ifdef __cplusplus
extern "C" {
#endif
long app_cxx(int n);
long app_other(int n);
void app_run(int n);
extern char app_text[], app_more[];
#ifdef __cplusplus
}

template <class T> struct app_class {
	__attribute__((noinline)) static long method(T n)
	{
		DTRACE_PROBE2(app___generic, long, n, const char *, app_text);
		return n + 1;
	}
};

inline __attribute__((noinline)) long app_inline(int n)
{
	DTRACE_PROBE2(app___generic, long, -n, const char *, app_more);
	return n + 2;
}
#endif
