/*
 * The stubs of every id of ids.h, which do nothing: what the unconverted
 * program is linked with, to be compared with the converted one.
 */
#include "ids.h"

#define PROBE(i, p, n, a)                                                      \
	void __dtrace_probe_##i(void);                                         \
	void __dtrace_probe_##i(void) {}
#define TEST(i)                                                                \
	int __dtrace_isenabled_##i(void);                                      \
	int __dtrace_isenabled_##i(void) { return 0; }

CALLED(PROBE)
TESTED(TEST)
