#include <stdio.h>

int work(int);
int first(int);
int second(int);

int
main(void)
{
	printf("%d %d %d\n", work(9), first(3), second(4));
	return (0);
}
