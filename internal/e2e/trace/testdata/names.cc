// Functions and types with names of C++.
#include <sdt.h>
#include <cstring>
DTRACE_PROBE_DECLARE(shop___placed);
namespace shop {
struct sold_out {};
template <class T> struct counter {
	__attribute__((noinline)) T add(T value)
	{
		DTRACE_PROBE1(shop___placed, int, value);
		if (value == 7)
			throw sold_out();
		return value + 1;
	}
};
__attribute__((noinline)) void order(const char *what) { DTRACE_PROBE1(shop___placed, int, (int)std::strlen(what)); }
}
int main()
{
	shop::order("tea");
	try {
		shop::counter<int>().add(7);
	} catch (shop::sold_out &) {
	}
}
