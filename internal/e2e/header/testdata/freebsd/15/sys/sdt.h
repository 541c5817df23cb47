/* As much of FreeBSD's sys/sdt.h, of FreeBSD 15, as the tests need. */
#ifndef _SYS_SDT_H
#define	_SYS_SDT_H

#define	TRACEPOINT_LIST	, *tracepoint_list[2]
#define	SIXTH_ARGUMENT	, __uintptr_t
#define	NO_TRACEPOINTS	, { 0, 0 }
#include "../../definitions.h"

#ifdef KDTRACE_HOOKS
#define	_SDT_TRACEPOINT_SET	sdt_tracepoint_set
#define	_SDT_PROBE(prov, mod, func, name, ...)	do {			\
	__label__ target;						\
	__asm__ goto ("0:\n\tnop; nop; nop; nop; nop\n"					\
	    ".pushsection set_sdt_tracepoint_set,\"aw\"\n"		\
	    "\t.quad %c0, 0b, %l1, 0\n.popsection\n" : :		\
	    "i" (sdt_##prov##_##mod##_##func##_##name) : : target);	\
	if (0) {							\
target:									\
		(*sdt_probe_func)(sdt_##prov##_##mod##_##func##_##name->id, \
		    __VA_ARGS__);					\
	}								\
} while (0)
#define	SDT_PROBE(prov, mod, func, name, a0, a1, a2, a3, a4)		\
	_SDT_PROBE(prov, mod, func, name, (__uintptr_t)a0,		\
	    (__uintptr_t)a1, (__uintptr_t)a2, (__uintptr_t)a3,		\
	    (__uintptr_t)a4, 0)
#endif

#endif /* !_SYS_SDT_H */
