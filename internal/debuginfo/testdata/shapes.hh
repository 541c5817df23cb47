#pragma once
extern "C" {
#include "shapes.h"
}

namespace shapes {

template <typename T> class Stack {
public:
	void push(T value)
	{
		if (depth < int(sizeof items / sizeof items[0]))
			items[depth++] = value;
		else
			overflow();
	}
	T at(int i) const { return i < depth ? items[i] : missing(); }
	int size() const { return depth; }

private:
	__attribute__((noinline)) void overflow() { depth = trace(0); }
	T missing() const { return T(area(depth, depth)); }
	T items[16];
	int depth = 0;
};

template <typename T> T sum(const Stack<T> &s)
{
	T total = 0;
	for (int i = 0; i < s.size(); i++)
		total += s.at(i);
	return total;
}

int both(const Stack<int> &s);

}
