/* Probes of C: of sdt.h, of a header's own prototype, and of no prototype. */
#include "app.h"

SDT_PROVIDER_DEFINE(old__app);
SDT_PROBE_DEFINE1(old__app, , , half_done, half-done, "int");

enum app_colour { APP_RED, APP_BLUE };
void __dtrace_probe_plain___declared(const char *, enum app_colour, volatile signed char, unsigned short);
void __dtrace_probe_plain___file(int, unsigned char);
void __dtrace_probe_plain__text___end__of__line(int);
void __dtrace_probe_plain___wide(int, long, short, char *, int, unsigned char, int, unsigned, signed char, unsigned short, long);
void __dtrace_probe_plain___wide__tail(int, long, short, char *, int, unsigned char, int, unsigned, signed char, unsigned short, long);

char app_text[] = "text", app_more[] = "more";
int app_dead(int n), app_deader(int n);
void app_wide(int a, long b, short c, char *d, int e, unsigned char f, int g, unsigned h, signed char i, unsigned short j, long k);

__attribute__((noinline)) static void app_tail(int n)
{
	DTRACE_PROBE1(app___tail, int, n);
}

__attribute__((noinline)) static long app_work(int n, long v)
{
	if (DTRACE_PROBE_ENABLED(app___idle)) /* which is not traced */
		return 1;
	DTRACE_PROBE4(app___done, int, -n, long, v, unsigned char, 200 + n, char *, app_text);
	app_tail(n);
	return n;
}

/* Has arguments in memory, as its probe does: so compilers jump to that. */
__attribute__((weak)) void app_wide(int a, long b, short c, char *d, int e, unsigned char f,
    int g, unsigned h, signed char i, unsigned short j, long k)
{
	__dtrace_probe_plain___wide__tail(a + 1, b, c, d, e, f, g, h, i, j, k);
}

void app_run(int n)
{
	__dtrace_probe_plain___wide(n, n, n, app_text, n, n, -2 * n, 3000000000u + n, (signed char)(-100 - n), (unsigned short)(65000 + n), -73588229205 * n);
	app_wide(n, n, n, app_text, n, n, -2 * n, 3000000000u + n, (signed char)(-100 - n), (unsigned short)(65000 + n), -73588229205 * n);
	app_work(n, 73588229205 + n);
	__dtrace_probe_plain___declared(app_more, APP_BLUE, (signed char)-n, (unsigned short)(65000 + n));
	__dtrace_probe_plain___file(-5 * n, (unsigned char)(250 + n));
	DTRACE_PROBE1(app___half__way, int, n + 1);
	SDT_PROBE1(old__app, , , half_done, n + 2);
	__dtrace_probe_plain__text___end__of__line(n + 3);
	app_cxx(n);
}

int app_dead(int n)
{
	DTRACE_PROBE1(app___tail, int, n);
	return 1;
}

int app_deader(int n)
{
	DTRACE_PROBE1(app___dead, int, n);
	return app_dead(n);
}
