/*
 * C++: probes in inline functions, templates, members and lambdas (text in
 * COMDAT groups, see inline.h), in a class with virtual functions, and around
 * a throw and a catch. Freestanding but for the C++ runtime's symbols.
 *
 * comdat_all runs all of it and returns a number that depends on neither the
 * compiler nor the conversion, for program.c.
 */
#include "inline.h"

word cxx_sum;

NOINLINE word cxx_outside(word a)
{
	cxx_sum += a;
	if (a > 100)
		throw (int)a;
	return a + 1;
}

struct cxx_base {
	virtual word run(word a)
	{
		__dtrace_probe_cxx___virtual(a);
		return a + 1;
	}
};

struct cxx_derived : cxx_base {
	word run(word a) override;
};

word cxx_derived::run(word a)
{
	__dtrace_probe_cxx___virtual(a * 2);
	return cxx_base::run(a) * 2;
}

NOINLINE cxx_base *cxx_choose(word a)
{
	static cxx_base base;
	static cxx_derived derived;

	return a & 1 ? &derived : &base;
}

/* A throw that only passes through: the destructor is what unwinding runs. */
NOINLINE word comdat_through(word a)
{
	cxx_guard guard(a);

	__dtrace_probe_cxx___before(a);
	return guard.member(cxx_outside(a));
}

static NOINLINE word local_lambda(word a)
{
	auto f = [](word b) {
		__dtrace_probe_cxx___lambda(b);
		return b << 1;
	};
	word (*p)(word) = f;

	return p(a) + f(a + 1);
}

extern "C" NOINLINE word comdat_all()
{
	word sum = 1;

	sum = sum * 31 + cxx_inline(2);
	cxx_inline_tail(2);
	cxx_inline_tail(3);
	sum = sum * 31 + (word)cxx_inline_value();
	sum = sum * 31 + cxx_inline_part(4);
	sum = sum * 31 + cxx_inline_part(1004);
	sum = sum * 31 + cxx_template<1>(5);
	sum = sum * 31 + cxx_template<2>(5);
	sum &= 0xffffff;
	sum = sum * 31 + cxx_inline_lambda(6);
	sum = sum * 31 + local_lambda(7);
	sum = sum * 31 + cxx_choose(0)->run(8);
	sum = sum * 31 + cxx_choose(1)->run(8);
	sum &= 0xffffff;
	sum = sum * 31 + cxx_inline_catch(9);
	sum = sum * 31 + cxx_inline_catch(109);
	try {
		sum = sum * 31 + comdat_through(10);
		sum = sum * 31 + comdat_through(110);
	} catch (int thrown) {
		__dtrace_probe_cxx___caught((word)thrown);
		sum = sum * 31 + (word)thrown + cxx_sum;
	}
	return sum & 0xffffff;
}
