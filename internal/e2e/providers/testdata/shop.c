/* A program with the probes of shop.d, in C and in C++. Each round fires each probe. */
#ifdef BEFORE
#include <sys/sdt.h>
#endif
#include "shop.h"
#include "shop.h"
#ifdef AFTER
#include <sys/sdt.h>
#endif
#include <stdio.h>
#include <stdlib.h>

struct box { int weight; };
enum colour { RED, GREEN };
#ifdef WORDS /* as stubs take arguments */
#define REAL (int)
#else
#define REAL
#endif
static const char text[] = "tea";

#ifdef __cplusplus
template <class T> static void inTemplate(T value)
{
	SHOP_ORDER_PLACED(value, "template");
}
extern "C"
#endif
__attribute__((noinline)) int work(int n, const char *s, char buf[], enum colour colour, struct box *box)
{
	char local[8] = "milk";
	SHOP_ORDER_PLACED(n, s);
	SHOP_ORDER_PLACED(colour, local);
	SHOP_ORDER_PLACED(5, text);
	SHOP_ORDER_PLACED(-1L, "literal");
	SHOP_ORDER_PLACED(n == 3, NULL);
#ifdef __cplusplus
	inTemplate(n);
	inTemplate(7UL);
#endif
	SHOP_SENT(box->weight + n, buf);
	if (SHOP_ONLY_TESTED_ENABLED())
		printf("only__tested is traced\n");
	if (n >= 0 && SHOP_SENT_ENABLED())
		printf("sent is traced\n");
	SHOP_EMPTY();
	SHOP_EMPTY_ENABLED();
	SHOP_WIDE(n, (unsigned)n, (long)n, (unsigned char)n, (short)n, (char)n, box, REAL(1.5 * n), REAL(float)n, 7L, (unsigned short)n, box);
	return SHOP_EMPTY_ENABLED() || SHOP_WIDE_ENABLED();
}

int main(int argc, char **argv)
{
	struct box box = { 40 };
	int i, n = argc > 1 ? atoi(argv[1]) : 3;
	for (i = 0; i < n; i++)
		work(i, argv[0], argv[argc - 1], GREEN, &box);
	printf("%d rounds\n", n);
	return 0;
}
