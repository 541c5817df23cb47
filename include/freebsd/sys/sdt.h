/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * FreeBSD's sys/sdt.h with tracepoints that sdtconvert converts. Give the
 * compiler the directory above this one with -I, before the kernel's own:
 *
 *	cc -I/usr/local/include/sdtconvert/freebsd -I/usr/src/sys ... -c tcp_input.c
 *
 * The kernel's header is included first, and keeps its definitions,
 * structures and linker sets. <sys/sdt_stubs.h> then replaces the macros that
 * fire probes.
 */
#include_next <sys/sdt.h>
#include <sys/sdt_stubs.h>
