/* Prints how often the guard of guarded.c was true. */
#include <stdio.h>

int serve(int n);

int main(void)
{
	int n = 0, up = 0;

	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		up += serve(n++);
	printf("%d of %d\n", up, n);
	return 0;
}
