/* A program with inlined, cold, unused and nested code; lib.c is its other file. */
#include "shapes.h"

int total;
int count(const char *text);

int
unused(int x)
{
	return volume(x, x + 1, x + 2);
}

__attribute__((cold, noinline)) static void
fail(int x)
{
	trace(-x);
	__builtin_trap();
}

int
main(int argc, char **argv)
{
	int sum = 0;
	for (int i = 0; i < argc; i++) {
		sum += volume(i, sum, argc);
		if (__builtin_expect(sum < 0, 0)) {
			trace(sum);
			fail(area(sum, i));
		}
		sum += count(argv[i]);
	}
	return sum & 1;
}
