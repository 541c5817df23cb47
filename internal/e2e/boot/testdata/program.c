/*
 * Probes of every form. No two have the same name: perf makes one event of a name, whatever the
 * provider. Before it reaches a probe, the program prints the line that a tracer
 * has to print of it. Each line of input is a round; one with an f is a round of a child, one with an h measures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <sdt.h>

#include "library.h"

void __dtrace_probe_call___none(void);
void __dtrace_probe_call___three(int, unsigned char, short);
void __dtrace_probe_call___wide(int, long, short, int, int, unsigned char, int, unsigned, signed char, unsigned short, long);
void __dtrace_probe_call___tail(int, long);
void __dtrace_probe_call___branch(int);
void __dtrace_probe_hot___call(int);

__attribute__((noinline)) void tail(int n)
{
	WANT("call:tail %d %d", n, -2 * n);
	__dtrace_probe_call___tail(n, -2L * n);
}

__attribute__((noinline)) void branch(int n)
{
	if (n & 1)
		__dtrace_probe_call___branch(n);
}

/* Constants, registers, and what is in memory without optimisation. */
__attribute__((noinline)) void nops(int n)
{
	WANT("nop:operands %d %d %d", -n, 3 * n, 200 + n);
	DTRACE_PROBE3(nop___operands, int, -n, long, 3L * n, unsigned char, 200 + n);
	WANT("nop:constants %d %d", 5, -7);
	DTRACE_PROBE2(nop___constants, int, 5, short, -7);
}

__attribute__((noinline)) int guarded(int n)
{
	if (!DTRACE_PROBE_ENABLED(test___guarded))
		return 0;
	WANT("test:guarded %d", n);
	DTRACE_PROBE1(test___guarded, int, n);
	return 1;
}

__attribute__((noinline)) void run(int n)
{
	WANT("call:none");
	__dtrace_probe_call___none();
	WANT("call:three %d %d %d", n, 250 + n, -1000 - n);
	__dtrace_probe_call___three(n, 250 + n, -1000 - n);
	WANT("call:wide %d %d %d %d %d %d %d %u %d %d %d", n, n + 1, -n, 4, 5, 250 - n, -7 * n, 3000000000u + n, -100 - n, 65000 + n, -11 * n);
	__dtrace_probe_call___wide(n, n + 1, -n, 4, 5, 250 - n, -7 * n, 3000000000u + n, -100 - n, 65000 + n, -11L * n);
	tail(n);
	if (n & 1)
		WANT("call:branch %d", n);
	branch(n);
	nops(n);
	printf("guard %d\n", guarded(n));
	in_library(n);
}

static long nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* What a call and a marked NOP take: the least of some loops, for one turn. */
__attribute__((noinline)) void hot(int turns)
{
	long call = 0, nop = 0, start, took;

	for (int n = 0; n < 5; n++) {
		start = nanoseconds();
		for (int i = 0; i < turns; i++)
			__dtrace_probe_hot___call(i);
		took = (nanoseconds() - start) / turns;
		call = n == 0 || took < call ? took : call;
		start = nanoseconds();
		for (int i = 0; i < turns; i++)
			DTRACE_PROBE1(hot___nop, int, i);
		took = (nanoseconds() - start) / turns;
		nop = n == 0 || took < nop ? took : nop;
	}
	printf("took %ld %ld\n", call, nop);
}

int main(void)
{
	char line[16];
	int n = 0, status;
	pid_t child;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		n++;
		if (line[0] == 'h') {
			hot(atoi(line + 1));
		} else if (line[0] != 'f') {
			run(n);
		} else if ((child = fork()) == 0) {
			run(n);
			fflush(stdout);
			_exit(7);
		} else if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
			printf("child: %#x\n", status);
		}
		puts("done");
	}
	return 0;
}
