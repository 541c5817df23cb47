/* A program with a seccomp filter that kills it for what a tracer may have it do, or with LENIENT for another call: filtered [PROGRAM] becomes that. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sdt.h>

#define KILL(number)									\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),				\
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifndef LENIENT
		KILL(argc > 1 ? SYS_open : SYS_mmap), /* a program begins with mmap */
		KILL(SYS_memfd_create), KILL(SYS_process_vm_readv), KILL(SYS_gettid),
#endif
		KILL(SYS_open),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	char text[32];

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 1;
	if (argc > 1)
		return execv(argv[1], argv + 1);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < 400; i++) {
		sprintf(text, "text %d", i);
		DTRACE_PROBE1(filtered___number, int, i);
		DTRACE_PROBE1(filtered___text, char *, text);
		usleep(2000);
	}
	return 5;
}
