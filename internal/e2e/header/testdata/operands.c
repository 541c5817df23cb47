/* For C and C++: arguments of each type, as operands_test.go expects their sizes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sdt.h>

SDT_PROVIDER_DEFINE(op);
SDT_PROBE_DEFINE0(op, , , none);
SDT_PROBE_DEFINE(op, , , integers);
SDT_PROBE_DEFINE(op, , , more);
SDT_PROBE_DEFINE(op, , , pointers);
SDT_PROBE_DEFINE(op, , , fields);
SDT_PROBE_DEFINE(op, , , constants);
DTRACE_PROBE_DECLARE(op___eight);
DTRACE_PROBE_DECLARE(op___twelve);

enum kind { MINUS = -7 };
#ifdef __cplusplus
enum class strict : unsigned char { LAST = 0xff };
#define LAST strict::LAST
#define NOTHING nullptr
#else
#define LAST ((unsigned char)0xff)
#define NOTHING NULL
#endif

struct fields {
	int narrow : 3;
	unsigned unsign : 5;
	bool flag : 1;
	long long wide : 33;
};

struct fields *operands_fields(struct fields *f);
void operands(signed char c, unsigned char uc, volatile short s, const unsigned short us, int i, unsigned u, long l,
    unsigned long ul);
void operands_more(long long ll, unsigned long long ull, bool b, enum kind kind, const volatile void *p, char text[4]);

struct fields *operands_fields(struct fields *f)
{
	SDT_PROBE0(op, , , none);
	SDT_PROBE4(op, , , fields, f->narrow, f->unsign, f->flag, f->wide);
	return f;
}

void operands(signed char c, unsigned char uc, volatile short s, const unsigned short us, int i, unsigned u, long l,
    unsigned long ul)
{
	SDT_PROBE7(op, , , integers, c, uc, s, us, i, u, l);
	DTRACE_PROBE8(op___eight, int, c + i, int, uc - i, int, us * i, int, i ^ 3, unsigned, u + 1, long, l + 2,
	    unsigned long, ul + 3, unsigned long, ul * u);
	DTRACE_PROBE12(op___twelve, int, c + i, int, uc - i, int, us * i, int, i ^ 3, unsigned, u + 1, long, l + 2,
	    unsigned long, ul + 3, unsigned long, ul * u, int, c - i, int, uc * i, unsigned long, ul - 5, long, l * i);
}

void operands_more(long long ll, unsigned long long ull, bool b, enum kind kind, const volatile void *p, char text[4])
{
	SDT_PROBE5(op, , , more, ll, ull, b, kind, ll > 0);
	SDT_PROBE5(op, , , pointers, p, text, operands_fields, NOTHING, "literal");
	SDT_PROBE6(op, , , constants, 5, -6L, 7ULL, (short)-8, LAST, MINUS);
}
