/* The tracepoint of loop.c for LTTng-UST. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER hot
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng.h"
#if !defined(LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(hot, tick, LTTNG_UST_TP_ARGS(int, i, long, x),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, i, i) lttng_ust_field_integer(long, x, x)))
#endif
#include <lttng/tracepoint-event.h>
