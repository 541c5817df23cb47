/* The program that DTrace traces: calls, tail calls, a static function, one that is
 * called from two places, and arguments on the stack. */
#include <sdt.h>

__attribute__((noinline)) static void place(int n, char *name)
{
	DTRACE_PROBE2(shop___order__placed, int, n, char *, name);
	__asm__ volatile("");
}

__attribute__((noinline)) void pack(int n, char *name)
{
	DTRACE_PROBE7(shop___parcel, int, n, long, n - 70000000000, unsigned char, 200 + n, char *, name, short, -n, int, n * n,
	    long, 1L << 40 | n);
	DTRACE_PROBE2(shop___weighed, int, n, long, n + 300000000000);
	__asm__ volatile("");
}

__attribute__((noinline)) void leave(int n)
{
	DTRACE_PROBE1(shop___tail, int, -n);
}

void never(int n)
{
	DTRACE_PROBE1(shop___tail, int, n);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		place(i, argv[0] + argc);
		pack(i, argv[0] + argc);
		place(-i, argv[0]);
	}
	for (int i = 0; i < 5; i++)
		leave(i);
	DTRACE_PROBE(shop___done);
	return 0;
}
