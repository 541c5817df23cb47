/* Arguments that are refused, but for -DCASE=0 and, in C23, 4. */
#include <sdt.h>

struct pair {
	long a, b;
};

SDT_PROVIDER_DEFINE(refused);
SDT_PROBE_DEFINE1(refused, , , probe, "int");

void headertest_refused(struct pair p, double d, long a);
void headertest_refused(struct pair p, double d, long a)
{
#if CASE == 0
	SDT_PROBE1(refused, , , probe, p.a + (d > 0) + a);
#elif CASE == 1
	SDT_PROBE1(refused, , , probe, (long double)d);
#elif CASE == 2
	SDT_PROBE1(refused, , , probe, p);
#elif CASE == 3
	SDT_PROBE1(refused, , , probe, (__int128_t)a);
#elif CASE == 4
	SDT_PROBE1(refused, , , probe, nullptr);
#endif
	(void)p, (void)d, (void)a;
}
