/* Functions that compilers inline into each other, three deep. */
#ifndef SHAPES_H
#define SHAPES_H

extern int trace(int value);
extern int total;

static inline int
square(int x)
{
	total += x;
	return trace(x) * x;
}

static inline int
area(int width, int height)
{
	if (width == height)
		return square(width);
	total -= height;
	return trace(width * height);
}

static inline __attribute__((always_inline)) int
volume(int width, int height, int depth)
{
	int base = area(width, height);
	for (int i = 0; i < depth; i++)
		base += square(i);
	return base * depth;
}

#endif
