/*
 * One probe, in a function that a form of its own is compiled of: FORM is its name,
 * and SITE one of those below. STAP is SystemTap's macro, with INSTRUCTION in place of
 * its NOP where that is defined. The stubs are declared here, and not by
 * sdt.h, which lets no compiler call one through the GOT.
 */
#include <sys/sdt.h>

#include "form.h"

#define STAP 1
#define CALL 2
#define TAIL 3
#define COND_TAIL 4

#ifdef INSTRUCTION
#undef _SDT_NOP
#define _SDT_NOP INSTRUCTION
#endif

#define JOIN(a, b) JOINED(a, b)
#define JOINED(a, b) a##b
#define QUOTE(a) QUOTED(a)
#define QUOTED(a) #a
#define STUB JOIN(__dtrace_probe_armed___, FORM)

void STUB(unsigned long, unsigned long);

static __attribute__((noinline)) void site(unsigned long a, unsigned long b)
{
#if SITE == STAP
	STAP_PROBE2(armed, FORM, a, b);
#elif SITE == CALL
	STUB(a, b);
	__asm__ volatile("");	/* or it would be a tail call */
#elif SITE == TAIL
	STUB(a, b);
#elif SITE == COND_TAIL
	if (a)
		STUB(a, b);
#endif
}

__attribute__((section("armed_forms"), used)) static const struct form form = { QUOTE(FORM), site };
