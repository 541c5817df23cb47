#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/rseq.h>
#include <time.h>
#include <sdt.h>
static struct { long v; char pad[120]; } counter[4096];
static volatile int stop;
static time_t end;
static long done[4];
static int increment(void)
{
	struct rseq *r = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint32_t cpu = r->cpu_id_start;
	__asm__ goto (
		".pushsection __rseq_cs, \"aw\"; .balign 32; 3: .long 0, 0; .quad 1f, 2f - 1f, 4f; .popsection\n"
		"leaq 3b(%%rip), %%rax; movq %%rax, %0\n"
		"1: cmpl %1, %2; jnz 4f\n"
		"movq %3, %%rax; movq $60, %%rcx\n"
		"5: dec %%rcx; jnz 5b\n"
		"incq %%rax; movq %%rax, %3\n"
		"2: .pushsection __rseq_abort, \"ax\"; .byte 0x0f, 0xb9, 0x3d; .long 0x53053053; 4: jmp %l[again]; .popsection\n"
		: : "m" (r->rseq_cs), "r" (cpu), "m" (r->cpu_id), "m" (counter[cpu].v) : "rax", "rcx", "memory", "cc" : again);
	return 1;
again:
	return 0;
}
static void *work(void *a)
{
	long n = 0;
	while (!stop) {
		n += increment();
		if (!(n & 0x3fff)) {
			DTRACE_PROBE1(rs___tick, long, n);
			if (!a && time(0) >= end) stop = 1;
		}
	}
	done[(long)a] = n;
	return 0;
}
int main(void)
{
	pthread_t t[4];
	long sum = 0, made = 0;
	if (!__rseq_size) return 77;
	end = time(0) + 3;
	for (long i = 1; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
	work(0);
	for (int i = 0; i < 4; i++) { if (i) pthread_join(t[i], 0); made += done[i]; }
	for (int i = 0; i < 4096; i++) sum += counter[i].v;
	printf("%ld made, %ld counted\n", made, sum);
	return made != sum;
}
