/* As much of FreeBSD's sys/sdt.h, of FreeBSD 12 to 14, as the tests need. */
#ifndef _SYS_SDT_H
#define	_SYS_SDT_H

#define	TRACEPOINT_LIST
#define	SIXTH_ARGUMENT
#define	NO_TRACEPOINTS
#include "../../definitions.h"

#ifdef KDTRACE_HOOKS
#define	SDT_PROBE(prov, mod, func, name, a0, a1, a2, a3, a4)	do {	\
	if (sdt_##prov##_##mod##_##func##_##name->id != 0)		\
		(*sdt_probe_func)(sdt_##prov##_##mod##_##func##_##name->id, \
		    (__uintptr_t)a0, (__uintptr_t)a1, (__uintptr_t)a2,	\
		    (__uintptr_t)a3, (__uintptr_t)a4);			\
} while (0)
#endif

#endif /* !_SYS_SDT_H */
