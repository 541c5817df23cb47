/*
 * Each macro of each header, in C and C++, on all systems. Where there are no probes, evaluated is never called. TestSystems
 * looks for macros that are missing here. MISTYPED has an argument that is not declared.
 */
#include <sdt.h>
#include <sdt_forms.h>
#include <usdt.h>

#if SDT_HEADER_VERSION < 1
#error "sdt.h does not tell its version"
#endif

#if defined(__FreeBSD__) || defined(__sun) || defined(ALONE) /* no tracer reads notes there */
#define SYSTEMS_NONE() (void)0
#define SYSTEMS_TWO(number, text) (void)(0 && (number))
#define SYSTEMS_TWO_ENABLED() (0)
#else
#include "systems.h" /* of systems.d, with notes */
#endif
#ifdef ALONE
#define SYSTEMSSTUBS_NONE SYSTEMS_NONE
#define SYSTEMSSTUBS_TWO SYSTEMS_TWO
#define SYSTEMSSTUBS_TWO_ENABLED SYSTEMS_TWO_ENABLED
#else
#include "systemsstubs.h" /* of systemsstubs.d, with stubs */
#endif

#ifdef MISTYPED
#define FIRST undeclared
#else
#define FIRST evaluated(1)
#endif

#ifdef __cplusplus
extern "C" {
#endif
int evaluated(int n);
int fire(void);
int guarded(void);
#ifdef __cplusplus
}
#endif

SDT_PROVIDER_DECLARE(sys);
SDT_PROVIDER_DEFINE(sys);
SDT_PROBE_DEFINE(sys, , , plain);
SDT_PROBE_DEFINE(sys, , , older, old-er);
SDT_PROBE_DEFINE0(sys, , , d0);
SDT_PROBE_DEFINE0_XLATE(sys, , , x0);
SDT_PROBE_DEFINE1(sys, , , d1, "int");
SDT_PROBE_DEFINE1_XLATE(sys, mod, func, x1, "int", "int");
SDT_PROBE_DEFINE2(sys, , , d2, "int", "int");
SDT_PROBE_DEFINE2_XLATE(sys, mod, func, x2, "int", "int", "int", "int");
SDT_PROBE_DEFINE3(sys, , , d3, "int", "int", "int");
SDT_PROBE_DEFINE3_XLATE(sys, mod, func, x3, "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE4(sys, , , d4, "int", "int", "int", "int");
SDT_PROBE_DEFINE4_XLATE(sys, mod, func, x4, "int", "int", "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE5(sys, , , d5, "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE5_XLATE(sys, mod, func, x5, "int", "int", "int", "int", "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE6(sys, , , d6, "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE6_XLATE(sys, mod, func, x6, "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE7(sys, , , d7, "int", "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE7_XLATE(sys, mod, func, x7, "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE1(sys, , , sname, s-name, "int");
SDT_PROBE_DECLARE(sys, , , d0);
DTRACE_PROBE_DECLARE(sys___p0);
DTRACE_PROBE_DECLARE(sys___p1);
DTRACE_PROBE_DECLARE(sys___p2);
DTRACE_PROBE_DECLARE(sys___p3);
DTRACE_PROBE_DECLARE(sys___p4);
DTRACE_PROBE_DECLARE(sys___p5);
DTRACE_PROBE_DECLARE(sys___p6);
DTRACE_PROBE_DECLARE(sys___p7);
DTRACE_PROBE_DECLARE(sys___p8);
DTRACE_PROBE_DECLARE(sys___p9);
DTRACE_PROBE_DECLARE(sys___p10);
DTRACE_PROBE_DECLARE(sys___p11);
DTRACE_PROBE_DECLARE(sys___p12);
USDT_DECLARE_SEMA(sys_shared);
USDT_DEFINE_SEMA(sys_shared);
DTRACE_PROBE_DECLARE(sys_guard);

int fire(void)
{
	const char *text = "text";
	int count = 0;

	SDT_PROBE0(sys, , , d0);
	SDT_PROBE1(sys, , , d1, FIRST);
	SDT_PROBE2(sys, , , d2, FIRST, evaluated(2));
	SDT_PROBE3(sys, , , d3, FIRST, evaluated(2), evaluated(3));
	SDT_PROBE4(sys, , , d4, FIRST, evaluated(2), evaluated(3), evaluated(4));
	SDT_PROBE5(sys, , , d5, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5));
	SDT_PROBE6(sys, , , d6, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6));
	SDT_PROBE7(sys, , , d7, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6), evaluated(7));
	SDT_PROBE(sys, , , d5, text, FIRST, &count, count, (char)1);
	DTRACE_PROBE(sys___p0);
	DTRACE_PROBE1(sys___p1, int, FIRST);
	DTRACE_PROBE2(sys___p2, int, FIRST, int, evaluated(2));
	DTRACE_PROBE3(sys___p3, int, FIRST, int, evaluated(2), int, evaluated(3));
	DTRACE_PROBE4(sys___p4, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4));
	DTRACE_PROBE5(sys___p5, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5));
	DTRACE_PROBE6(sys___p6, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5), int, evaluated(6));
	DTRACE_PROBE7(sys___p7, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5), int, evaluated(6), int, evaluated(7));
	DTRACE_PROBE8(sys___p8, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5), int, evaluated(6), int, evaluated(7), int, evaluated(8));
	DTRACE_PROBE9(sys___p9, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5), int, evaluated(6), int, evaluated(7), int, evaluated(8), int, evaluated(9));
	DTRACE_PROBE10(sys___p10, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5), int, evaluated(6), int, evaluated(7), int, evaluated(8), int, evaluated(9), int, evaluated(10));
	DTRACE_PROBE11(sys___p11, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5), int, evaluated(6), int, evaluated(7), int, evaluated(8), int, evaluated(9), int, evaluated(10), int, evaluated(11));
	DTRACE_PROBE12(sys___p12, int, FIRST, int, evaluated(2), int, evaluated(3), int, evaluated(4), int, evaluated(5), int, evaluated(6), int, evaluated(7), int, evaluated(8), int, evaluated(9), int, evaluated(10), int, evaluated(11), int, evaluated(12));
	USDT(sys, u0);
	USDT(sys, u1, FIRST);
	USDT(sys, u2, FIRST, evaluated(2));
	USDT(sys, u3, FIRST, evaluated(2), evaluated(3));
	USDT(sys, u4, FIRST, evaluated(2), evaluated(3), evaluated(4));
	USDT(sys, u5, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5));
	USDT(sys, u6, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6));
	USDT(sys, u7, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6), evaluated(7));
	USDT(sys, u8, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6), evaluated(7), evaluated(8));
	USDT(sys, u9, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6), evaluated(7), evaluated(8), evaluated(9));
	USDT(sys, u10, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6), evaluated(7), evaluated(8), evaluated(9), evaluated(10));
	USDT(sys, u11, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6), evaluated(7), evaluated(8), evaluated(9), evaluated(10), evaluated(11));
	USDT(sys, u12, FIRST, evaluated(2), evaluated(3), evaluated(4), evaluated(5), evaluated(6), evaluated(7), evaluated(8), evaluated(9), evaluated(10), evaluated(11), evaluated(12));
	USDT_WITH_SEMA(sys, sema, FIRST);
#if defined(SDT_SEMAPHORES_) || defined(SDT_DISABLE)
	DTRACE_PROBE_GUARDED_BY(sys___p0, sys_guard);
	USDT_WITH_EXPLICIT_SEMA(sys_shared, sys, shared, FIRST);
	count += USDT_SEMA_IS_ACTIVE(sys_shared);
#endif
	SYSTEMS_NONE();
	SYSTEMS_TWO(FIRST, text);
	SYSTEMSSTUBS_NONE();
	SYSTEMSSTUBS_TWO(FIRST, text);
	return count;
}

int guarded(void)
{
	return SDT_PROBE_ENABLED(sys, , , d0) + DTRACE_PROBE_ENABLED(sys___p1) + USDT_IS_ACTIVE(sys, sema) + SYSTEMS_TWO_ENABLED() +
	    SYSTEMSSTUBS_TWO_ENABLED();
}

#ifdef SDT_DISABLE
int constant[SDT_PROBE_ENABLED(sys, , , d0) == 0 && DTRACE_PROBE_ENABLED(sys___p1) == 0 && USDT_IS_ACTIVE(sys, sema) == 0 &&
    USDT_SEMA_IS_ACTIVE(sys_shared) == 0 && SYSTEMS_TWO_ENABLED() == 0 && SYSTEMSSTUBS_TWO_ENABLED() == 0 ? 1 : -1];
#elif defined(SDT_REGISTERS)
int registers = SDT_REGISTERS;
#endif
