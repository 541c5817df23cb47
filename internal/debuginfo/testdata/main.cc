// Templates, member functions, lambdas and a namespace; lib.cc shares some.
#include "shapes.hh"

int total;

int main(int argc, char **)
{
	shapes::Stack<int> ints;
	shapes::Stack<long> longs;
	for (int i = 0; i < argc; i++) {
		ints.push(i);
		longs.push(i * 2L);
	}
	auto twice = [&](int n) { return shapes::sum(ints) * n; };
	return twice(argc) + int(shapes::sum(longs)) + shapes::both(ints);
}
