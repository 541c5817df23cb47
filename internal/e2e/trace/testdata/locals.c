/* Thread-local variables as operands of SystemTap's header: what a compiler has in segments, and others in registers. */
#include <pthread.h>
#include <stdio.h>
#include <sys/sdt.h>

extern __thread int other; /* of another file */
__thread int own = 41;
static __thread short small = -7;
__thread char bytes[16] = "hello", aligned[100] __attribute__((aligned(64)));
__thread double number = 1.5;
static __thread struct { int a[4]; } table = { { 1, 2, 3, 4 } };
static __thread const char *text;
static FILE *out;

__attribute__((noinline)) static void fire(int i)
{
	STAP_PROBE1(local, own, own);
	STAP_PROBE2(local, small, small, own + i);
	STAP_PROBE1(local, element, table.a[i & 3]);
	STAP_PROBE1(local, third, table.a[2]);
	STAP_PROBE1(local, byte, bytes[i & 7]);
	STAP_PROBE1(local, number, number);
	STAP_PROBE1(local, text, text);
	STAP_PROBE1(local, other, other);
}

static void *run(void *argument)
{
	long base = (long)argument;
	own = base, number = base / 4.0, small = -base, other = 7 * base, table.a[2] = base * 3, text = base == 1 ? "one" : "two";
	for (int i = 0; i < 2; i++) {
		own += i, bytes[i] += base;
		fprintf(out, "own(%d)\nsmall(%d, %d)\nelement(%d)\nthird(%d)\nbyte(%d)\nnumber(%g)\ntext(text=\"%s\")\nother(%d)\n", own, small, own + i, table.a[i], table.a[2],
			bytes[i], number, text, other);
		fire(i);
	}
	return aligned;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	out = fopen(argv[1], "w");
	run((void *)1);
	pthread_create(&thread, 0, run, (void *)2);
	pthread_join(thread, 0);
	return fclose(out);
}
