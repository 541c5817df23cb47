// Object K of many that define the same functions, so that it shows which came first.
// With PROBES, each fires a probe: by a call, with NOPS by a marked NOP, and with REFUSED by a
// call that no conversion takes.

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
#define PROBE NAME(__dtrace_probe_app___p, K)
#define WEAK __attribute__((weak))

#ifdef NOPS
#include <sdt.h>
#define MARK(name) DTRACE_PROBE(name)
#define FIRE() MARK(NAME(app___p, K))
#elif defined REFUSED
void PROBE(void);
static void (*volatile stub)(void) = PROBE;
#define FIRE() stub()
#elif defined PROBES
void PROBE(void);
#define FIRE() PROBE()
#else
#define FIRE() ((void)0)
#endif

__attribute__((used, section("ids"))) static const int id = K;

WEAK int which(void)
{
	FIRE();
	return K;
}

WEAK int extra(void)
{
	FIRE();
	return 2 * K;
}

#ifdef STRONG
#undef WEAK
#define WEAK
#endif

WEAK int NAME(pull, PULL)(void)
{
	FIRE();
	return 3 * K;
}

WEAK int NAME(only, K)(void)
{
	FIRE();
	return 4 * K;
}
