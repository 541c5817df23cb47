/*
 * Raises the semaphore of a probe as a tracer would, and prints what the tests of three
 * objects, one of them in an archive, return.
 */
#include <stdio.h>

extern unsigned short shop_item_semaphore __attribute__((visibility("hidden")));
char sdt_shop___item;

#define DECLARE(n) \
	extern long n##_call(long, long, long); \
	extern long long n##_twice(long); \
	extern int n##_tail(long), n##_cond(long), n##_jcc(long)
#define SHOW(n) \
	printf(#n " %ld %d %d %d %d %d %lld\n", n##_call(1, 2, 3), n##_tail(1), n##_cond(4), n##_cond(2), n##_jcc(4), n##_jcc(2), n##_twice(1))

DECLARE(one);
DECLARE(two);
DECLARE(three);

int main(int argc, char **argv)
{
	static const unsigned short values[] = { 0, 1, 0x8002, 0xffff, 0 };
	unsigned i;

	(void)argc, (void)argv;
	for (i = 0; i < sizeof values / sizeof *values; i++) {
		*(volatile unsigned short *)&shop_item_semaphore = values[i];
		SHOW(one);
		SHOW(two);
		SHOW(three);
	}
	return 0;
}
