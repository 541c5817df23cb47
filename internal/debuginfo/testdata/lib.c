#include "shapes.h"

#line 100 "generated.y"
static int
digit(char c)
{
	return c >= '0' && c <= '9' ? square(c - '0') : 0;
}

int
count(const char *text)
{
	int n = 0;
	while (*text != '\0')
		n += digit(*text++);
	return n;
}

int
also_unused(const char *text)
{
	return count(text) + count(text + 1);
}

__attribute__((noinline)) int
trace(int value)
{
	static int last;
	int before = last;
	last = value;
	return before;
}
