/*
 * What both C++ files of the test program share: tracepoints in inline
 * functions, templates, members and lambdas, in a namespace. Each is run once,
 * so that calls of stubs are as many as sites.
 */
#include <sdt.h>

#define NOINLINE __attribute__((noinline))

SDT_PROBE_DECLARE(hdr, , , elsewhere);
SDT_PROBE_DECLARE(hdr, , , widths);
SDT_PROBE_DECLARE(cxx, , , in__template);
SDT_PROBE_DECLARE(cxx, , , in__lambda);
DTRACE_PROBE_DECLARE(cxx___inline);
DTRACE_PROBE_DECLARE(cxx___generic);

extern "C" int headertest_sink;

namespace outer {
inline NOINLINE int shared_inline(int a)
{
	DTRACE_PROBE1(cxx___inline, int, a);
	return a + headertest_sink;
}

template <class T> NOINLINE T pass(T a)
{
	if (SDT_PROBE_ENABLED(cxx, , , in__template))
		SDT_PROBE1(cxx, , , in__template, a);
	auto inner = [](T b) {
		DTRACE_PROBE1(cxx___generic, T, b);
		headertest_sink += 0;
	};
	inner(a);
	return a;
}

struct counter {
	static const int limit = 3;	/* never defined: a use by reference would not link */
	template <class T> NOINLINE T member(T a)
	{
		SDT_PROBE2(cxx, , , in__template, a, limit);
		return a;
	}
};
}
