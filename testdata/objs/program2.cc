/*
 * The C++ half of the program: copies of inline.h's functions that comdat.cc
 * has too, an exception thrown through a probed function and caught, and tail
 * calls. See program.c.
 */
#include <cstdio>
#include <string>

#include "inline.h"

extern "C" {
void __dtrace_probe_program___throw(word);
void __dtrace_probe_program___step(int, word);
void __dtrace_probe_program___tail(word);
word program2_all(void);
}

namespace {

struct failure {
	std::string text;
	word value;
};

NOINLINE word deepest(word a)
{
	cxx_guard guard(a);

	__dtrace_probe_program___throw(a);
	if (a % 3 == 0)
		throw failure{"failure " + std::to_string(a), a};
	return guard.member(a);
}

NOINLINE word middle(word a)
{
	cxx_guard guard(a + 1);

	__dtrace_probe_program___step(0, a);
	a = deepest(a);
	__dtrace_probe_program___step(0, a);
	return guard.member(a);
}

NOINLINE word catcher(word a)
{
	try {
		return middle(a);
	} catch (const failure &f) {
		__dtrace_probe_program___throw(f.value);
		std::printf("caught: %s\n", f.text.c_str());
		return f.value;
	}
}

NOINLINE void tail(word a)
{
	std::fflush(stdout);
	__dtrace_probe_program___tail(a);
}

} // namespace

word program2_all(void)
{
	word sum = 0;

	for (word i = 1; i < 8; i++)
		sum = (sum * 31 + catcher(i)) & 0xffffff;
	tail(sum);
	sum += cxx_inline(sum) + cxx_inline_part(2000) + cxx_inline_cold(1);
	sum += cxx_template<2>(sum) + cxx_template<3>(sum);
	sum += cxx_inline_lambda(sum) + (word)cxx_inline_value();
	sum += cxx_inline_catch(50) + cxx_inline_catch(500);
	cxx_inline_tail(sum);
	return sum & 0xffffff;
}
