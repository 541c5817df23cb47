/* C++: what program.h has no room for, and the probes that it uses. */
#include <stddef.h>

#include "program.h"

SDT_PROVIDER_DEFINE(cxx);
SDT_PROBE_DEFINE2(cxx, , , in__template, "T", "int");
SDT_PROBE_DEFINE1(cxx, , , in__lambda, "void *");
SDT_PROBE_DEFINE7(cxx, , , kinds, "enum plain", "enum class strict", "bool", "void *", "nullptr_t", "char *", "int");
SDT_PROVIDER_DECLARE(hdr);
SDT_PROBE_DEFINE0(hdr, , , from__cxx);

enum plain { MINUS = -7 };
enum class strict : unsigned char { LAST = 0xff };
struct fields {
	int narrow : 3;
	bool flag;
	const volatile char *place;
};

namespace {
NOINLINE void hidden(int a)
{
	SDT_PROBE1(hdr, , , elsewhere, a);
}
}

static NOINLINE void kinds(const fields *f)
{
	const char *volatile text = nullptr;

	SDT_PROBE7(cxx, , , kinds, MINUS, strict::LAST, f->flag, f->place, nullptr, NULL, f->narrow);
	SDT_PROBE5(hdr, , , widths, text, 'x', static_cast<signed char>(-1), static_cast<short>(-2), -3LL);
}

static NOINLINE void lambdas(void *p)
{
	auto f = [=] { SDT_PROBE1(cxx, , , in__lambda, p); };
	f();
	SDT_PROBE1(cxx, , , in__lambda, [] { return false; }());
}

extern "C" int headertest_cxx2(int);
extern "C" int headertest_cxx();

/* Through a pointer, or gcc makes a second copy for direct calls. */
static int (*volatile headertest_first)(int) = outer::shared_inline;

extern "C" int headertest_cxx()
{
	fields f = { -2, true, nullptr };
	outer::counter c;

	hidden(5);
	kinds(&f);
	lambdas(nullptr);
	headertest_first(1);
	outer::pass(2);
	outer::pass(strict::LAST);
	c.member(-4L);
	return headertest_cxx2(0);
}
