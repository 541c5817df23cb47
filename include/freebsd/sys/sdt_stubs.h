/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Tracepoints of FreeBSD's SDT(9) as calls of stubs, for sdtconvert. The
 * sys/sdt.h beside this file includes the kernel's header and then this one.
 *
 * The kernel's definitions stay: SDT_PROVIDER_DEFINE, SDT_PROBE_DEFINE and
 * the rest make the same objects and linker sets as before. Replaced are the
 * macros that fire a probe. Each one calls a function that is defined
 * nowhere,
 *
 *	__dtrace_probe_tcp___send(...)
 *
 * and sdtconvert overwrites the call with a NOP. Arguments are therefore
 * evaluated whether or not the probe is enabled.
 *
 * FreeBSD 15 marks tracepoints itself, with assembly and a record in
 * set_sdt_tracepoint_set. There the kernel's macros stay, because a provider
 * can read those records too. Define SDT_CALLS to replace them as well. Both
 * kinds may be in one kernel, or even in one module.
 */
#ifndef SDTCONVERT_SDT_STUBS_H
#define	SDTCONVERT_SDT_STUBS_H

#ifdef _KERNEL

/* What a test is where nothing can enable it. */
#ifndef SDT_PROBE_ENABLED
#if !defined(KDTRACE_HOOKS)
#define	SDT_PROBE_ENABLED(prov, mod, func, name)	(0)
#elif defined(_SDT_TRACEPOINT_SET) && !defined(SDT_CALLS)
#define	SDT_PROBE_ENABLED(prov, mod, func, name)			\
	(__predict_false(sdt_##prov##_##mod##_##func##_##name->id != 0))
#endif
#endif

#if defined(KDTRACE_HOOKS) && \
    (!defined(_SDT_TRACEPOINT_SET) || defined(SDT_CALLS))

/*
 * A stub is declared in the block of its call, because DTRACE_PROBE defines
 * its probe there. gcc warns of that (-Wnested-externs, and -Wredundant-decls
 * at a second call), and the kernel enables both warnings. The name of the
 * declaration has the number of arguments at its end, so that two calls with
 * different numbers do not disagree; its assembler name is the same for both.
 */
#if defined(__GNUC__) && !defined(__clang__)
#define	SDT_NESTED_		_Pragma("GCC diagnostic push")		\
	_Pragma("GCC diagnostic ignored \"-Wnested-externs\"")	\
	_Pragma("GCC diagnostic ignored \"-Wredundant-decls\"")
#define	SDT_NESTED_END_		_Pragma("GCC diagnostic pop")
#else
#define	SDT_NESTED_
#define	SDT_NESTED_END_
#endif
#ifdef __i386__ /* -mrtd has other functions pop their arguments, which no NOP does */
#define	SDT_STUB_	__attribute__((__nothrow__, __cdecl__, __visibility__("hidden")))
#else
#define	SDT_STUB_	__attribute__((__nothrow__, __visibility__("hidden")))
#endif

#define	SDT_STUB_CALL_(id, n, params, args)	do {			\
	SDT_NESTED_							\
	extern void __dtrace_probe_##id##_##n params			\
	    __asm__("__dtrace_probe_" #id) SDT_STUB_;			\
	SDT_NESTED_END_							\
	__dtrace_probe_##id##_##n args;					\
} while (0)

/*
 * Each macro pastes as late as the kernel's does: what a name stands for
 * there, it stands for here.
 */
#define	SDT_STUB0_(prov, mod, func, name)				\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 0, (void), ())
#define	SDT_STUB1_(prov, mod, func, name, a0)				\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 1,		\
	    (__uintptr_t), ((__uintptr_t)(a0)))
#define	SDT_STUB2_(prov, mod, func, name, a0, a1)			\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 2,		\
	    (__uintptr_t, __uintptr_t),					\
	    ((__uintptr_t)(a0), (__uintptr_t)(a1)))
#define	SDT_STUB3_(prov, mod, func, name, a0, a1, a2)			\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 3,		\
	    (__uintptr_t, __uintptr_t, __uintptr_t),			\
	    ((__uintptr_t)(a0), (__uintptr_t)(a1), (__uintptr_t)(a2)))
#define	SDT_STUB4_(prov, mod, func, name, a0, a1, a2, a3)		\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 4,		\
	    (__uintptr_t, __uintptr_t, __uintptr_t, __uintptr_t),	\
	    ((__uintptr_t)(a0), (__uintptr_t)(a1), (__uintptr_t)(a2),	\
	    (__uintptr_t)(a3)))
#define	SDT_STUB5_(prov, mod, func, name, a0, a1, a2, a3, a4)		\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 5,		\
	    (__uintptr_t, __uintptr_t, __uintptr_t, __uintptr_t,	\
	    __uintptr_t),						\
	    ((__uintptr_t)(a0), (__uintptr_t)(a1), (__uintptr_t)(a2),	\
	    (__uintptr_t)(a3), (__uintptr_t)(a4)))
#define	SDT_STUB6_(prov, mod, func, name, a0, a1, a2, a3, a4, a5)	\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 6,		\
	    (__uintptr_t, __uintptr_t, __uintptr_t, __uintptr_t,	\
	    __uintptr_t, __uintptr_t),					\
	    ((__uintptr_t)(a0), (__uintptr_t)(a1), (__uintptr_t)(a2),	\
	    (__uintptr_t)(a3), (__uintptr_t)(a4), (__uintptr_t)(a5)))
#define	SDT_STUB7_(prov, mod, func, name, a0, a1, a2, a3, a4, a5, a6)	\
	SDT_STUB_CALL_(prov##_##mod##_##func##_##name, 7,		\
	    (__uintptr_t, __uintptr_t, __uintptr_t, __uintptr_t,	\
	    __uintptr_t, __uintptr_t, __uintptr_t),			\
	    ((__uintptr_t)(a0), (__uintptr_t)(a1), (__uintptr_t)(a2),	\
	    (__uintptr_t)(a3), (__uintptr_t)(a4), (__uintptr_t)(a5),	\
	    (__uintptr_t)(a6)))

#undef	SDT_PROBE
#undef	SDT_PROBE0
#undef	SDT_PROBE1
#undef	SDT_PROBE2
#undef	SDT_PROBE3
#undef	SDT_PROBE4
#undef	SDT_PROBE5
#undef	SDT_PROBE6
#undef	SDT_PROBE7
#define	SDT_PROBE(prov, mod, func, name, a0, a1, a2, a3, a4)		\
	SDT_STUB5_(prov, mod, func, name, a0, a1, a2, a3, a4)
#define	SDT_PROBE0(prov, mod, func, name)				\
	SDT_STUB0_(prov, mod, func, name)
#define	SDT_PROBE1(prov, mod, func, name, a0)				\
	SDT_STUB1_(prov, mod, func, name, a0)
#define	SDT_PROBE2(prov, mod, func, name, a0, a1)			\
	SDT_STUB2_(prov, mod, func, name, a0, a1)
#define	SDT_PROBE3(prov, mod, func, name, a0, a1, a2)			\
	SDT_STUB3_(prov, mod, func, name, a0, a1, a2)
#define	SDT_PROBE4(prov, mod, func, name, a0, a1, a2, a3)		\
	SDT_STUB4_(prov, mod, func, name, a0, a1, a2, a3)
#define	SDT_PROBE5(prov, mod, func, name, a0, a1, a2, a3, a4)		\
	SDT_STUB5_(prov, mod, func, name, a0, a1, a2, a3, a4)
#define	SDT_PROBE6(prov, mod, func, name, a0, a1, a2, a3, a4, a5)	\
	SDT_STUB6_(prov, mod, func, name, a0, a1, a2, a3, a4, a5)
#define	SDT_PROBE7(prov, mod, func, name, a0, a1, a2, a3, a4, a5, a6)	\
	SDT_STUB7_(prov, mod, func, name, a0, a1, a2, a3, a4, a5, a6)

/*
 * An is-enabled test, which the kernel's header does not have. The provider
 * makes the result 1 while a DTrace probe of that probe is enabled.
 */
#undef	SDT_PROBE_ENABLED
#define	SDT_PROBE_ENABLED(prov, mod, func, name)	(__extension__ ({ \
	SDT_NESTED_							\
	extern int __dtrace_isenabled_##prov##_##mod##_##func##_##name(void) \
	    SDT_STUB_;							\
	SDT_NESTED_END_							\
	__predict_false(						\
	    __dtrace_isenabled_##prov##_##mod##_##func##_##name() != 0);	\
}))

/* ZFS reads the probe's id by itself, and the provider leaves that 0. */
#ifdef SET_ERROR
#undef	SET_ERROR
#define	SET_ERROR(err)	(__extension__ ({				\
	__typeof__(err) _sdt_error = (err);				\
	SDT_PROBE1(sdt, , , set__error, _sdt_error);			\
	_sdt_error;							\
}))
#endif

#endif /* KDTRACE_HOOKS, and tracepoints to replace */
#endif /* _KERNEL */

#endif /* !SDTCONVERT_SDT_STUBS_H */
