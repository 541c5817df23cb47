/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The macros of libbpf's usdt.h (https://github.com/libbpf/usdt), for sources that use it. They make
 * the tracepoints and guards of sdt.h, so objects have to be converted, and each probe has a function.
 *
 *	USDT(shop, placed, item, count);
 *	USDT_WITH_SEMA(shop, priced, price(item));
 *	if (USDT_IS_ACTIVE(shop, priced)) ...
 *
 *	USDT_DEFINE_SEMA(orders);
 *	USDT_WITH_EXPLICIT_SEMA(orders, shop, packed, item);
 *	if (USDT_SEMA_IS_ACTIVE(orders)) ...
 *
 * Arguments are integers, enumerations and pointers, twelve at most. A shared semaphore is the guard of a
 * probe `sdt:::orders', which need not exist. In C++ tests, and tracepoints that are calls, declare what they need in
 * their block. g++ 12 forgets that in templates: there, use DTRACE_PROBE_DECLARE and the macros of sdt.h.
 */
#ifndef SDTCONVERT_USDT_H
#define SDTCONVERT_USDT_H

#include <sdt.h>

/* Arguments that may be missing are not what -pedantic wants of macros. */
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC system_header
#endif
#if defined(__clang__) && defined(__cplusplus) /* of what blocks in an unnamed namespace declare */
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

#define USDT(group, name, ...) USDT_FIRE_(_##group##___##name, #group "___" #name, ##__VA_ARGS__)
#define USDT_WITH_SEMA(group, name, ...) do {								\
	USDT_DEFINE_(_##group##___##name);								\
	USDT_FIRE_(_##group##___##name, #group "___" #name, ##__VA_ARGS__);				\
} while (0)
#define USDT_IS_ACTIVE(group, name) USDT_TEST_(_##group##___##name)

#define USDT_DECLARE_SEMA(sema) struct sdt_probe
#define USDT_WITH_EXPLICIT_SEMA(sema, group, name, ...) do {						\
	SDT_GUARDED_BY_(_##group##___##name, _##sema);							\
	USDT_FIRE_(_##group##___##name, #group "___" #name, ##__VA_ARGS__);				\
} while (0)
#define USDT_SEMA_IS_ACTIVE(sema) USDT_TEST_(_##sema)

#if defined(SDT_SEMAPHORES_) && !defined(SDT_DISABLE)
#define USDT_DEFINE_SEMA(sema) __asm__(SDT_SEMAPHORE_(_##sema))
#define USDT_DEFINE_(id) SDT_ASM_(SDT_SEMAPHORE_(id) : :)
#else
#define USDT_DEFINE_SEMA(sema) struct sdt_probe
#define USDT_DEFINE_(id) ((void)0)
#endif

/* What C++ has to know of a test, and of a tracepoint that is a call. */
#if !defined(__cplusplus) || defined(SDT_DISABLE)
#define USDT_TEST_(id) SDT_TEST_(id)
#else
#define USDT_TEST_(id) (__extension__({ extern SDT_TESTED_(id) SDT_TEST_(id); }))
#endif
#if !defined(__cplusplus) || defined(SDT_DISABLE) || defined(SDT_NOPS_)
#define USDT_LET_(id, n)
#else
#define USDT_LET_(id, n) SDT_OVERLOAD_(id, n);
#endif

#ifndef __GNUC__
/* Others count arguments in other ways. SDT_DISABLE is defined: nothing calls this function. */
#ifdef __cplusplus
extern "C"
#endif
int sdt_unevaluated_(int, ...);
#define USDT_FIRE_(id, name, ...) ((void)sizeof(sdt_unevaluated_(0, ##__VA_ARGS__)))
#else
/* Chooses the macro of as many arguments as there are behind the name. */
#define USDT_FIRE_(id, name, ...)									\
	SDT_JOIN_(SDT_JOIN_(USDT_, SDT_16TH_(0, ##__VA_ARGS__, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)), _)	\
	(id, name, ##__VA_ARGS__)
#endif
#define USDT_SITE_(id, name, n, words) do { USDT_LET_(id, n) SDT_FIRE_(id, name, n, words, ""); } while (0)
#define USDT_0_(id, name) USDT_SITE_(id, name, 0, SDT_WORDS_0_())
#define USDT_1_(id, name, a) USDT_SITE_(id, name, 1, SDT_WORDS_1_(a))
#define USDT_2_(id, name, a, b) USDT_SITE_(id, name, 2, SDT_WORDS_2_(a, b))
#define USDT_3_(id, name, a, b, c) USDT_SITE_(id, name, 3, SDT_WORDS_3_(a, b, c))
#define USDT_4_(id, name, a, b, c, d) USDT_SITE_(id, name, 4, SDT_WORDS_4_(a, b, c, d))
#define USDT_5_(id, name, a, b, c, d, e) USDT_SITE_(id, name, 5, SDT_WORDS_5_(a, b, c, d, e))
#define USDT_6_(id, name, a, b, c, d, e, f) USDT_SITE_(id, name, 6, SDT_WORDS_6_(a, b, c, d, e, f))
#define USDT_7_(id, name, a, b, c, d, e, f, g)								\
	USDT_SITE_(id, name, 7, SDT_WORDS_7_(a, b, c, d, e, f, g))
#define USDT_8_(id, name, a, b, c, d, e, f, g, h)							\
	USDT_SITE_(id, name, 8, SDT_WORDS_8_(a, b, c, d, e, f, g, h))
#define USDT_9_(id, name, a, b, c, d, e, f, g, h, i)							\
	USDT_SITE_(id, name, 9, SDT_WORDS_9_(a, b, c, d, e, f, g, h, i))
#define USDT_10_(id, name, a, b, c, d, e, f, g, h, i, j)						\
	USDT_SITE_(id, name, 10, SDT_WORDS_10_(a, b, c, d, e, f, g, h, i, j))
#define USDT_11_(id, name, a, b, c, d, e, f, g, h, i, j, k)						\
	USDT_SITE_(id, name, 11, SDT_WORDS_11_(a, b, c, d, e, f, g, h, i, j, k))
#define USDT_12_(id, name, a, b, c, d, e, f, g, h, i, j, k, l)						\
	USDT_SITE_(id, name, 12, SDT_WORDS_12_(a, b, c, d, e, f, g, h, i, j, k, l))

#endif
