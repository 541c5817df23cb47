#include "shapes.hh"

namespace shapes {

int both(const Stack<int> &s)
{
	struct Local {
		static int add(int a, int b) { return trace(a) + b; }
	};
	return Local::add(sum(s), sum(s) + 1);
}

int never(const Stack<int> &s)
{
	return both(s) * 2;
}

}

extern "C" __attribute__((noinline)) int trace(int value)
{
	static int last;
	int before = last;
	last = value;
	return before;
}
