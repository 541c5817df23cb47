/* The twin's stubs, which print what a tracer shall print. */
#include <stdint.h>
#include <stdio.h>

#define STUB(name) __attribute__((visibility("hidden"))) void __dtrace_probe_##name

STUB(app___done)(int n, long v, unsigned char c, char *s) { printf("app:done %d %ld %d %s\n", n, v, c, s); }
STUB(app___tail)(int n) { printf("app:tail %d\n", n); }
STUB(app___dead)(int n) { printf("app:dead %d\n", n); }
STUB(app___generic)(long n, const char *s) { printf("app:generic %ld %s\n", n, s); }
STUB(plain___declared)(const char *s, int e, signed char c, unsigned short u) { printf("plain:declared %s %d %d %d\n", s, e, c, u); }
STUB(plain___file)(int n, unsigned char c) { printf("plain:file %d %d\n", n, c); }
#define WIDE int a, long b, short c, char *d, int e, unsigned char f, int g, unsigned h, signed char i, unsigned short j, long k
STUB(plain___wide)(WIDE) { printf("plain:wide %d %d\nmemory %d %u %d %d\n", a, f, g, h, i, j); }
STUB(plain___wide__tail)(WIDE) { printf("plain:wide__tail %d %d\nmemory %d %u %d %d\n", a, f, g, h, i, j); }
STUB(plain__text___end__of__line)(int n) { printf("plain__text:end__of__line %d\n", n); }
STUB(app___half__way)(int n) { printf("app:half__way %d\n", n); }
STUB(old__app___half_done)(int n) { printf("old__app:half__done %d\n", n); }
__attribute__((visibility("hidden"))) int __dtrace_isenabled_app___idle(void) { return 0; }
