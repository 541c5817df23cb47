package trace

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// preserved are what a thread and a process have that tracing leaves as it is: what CRIU saves of them (ptrace(2), criu/parasite.c). Each program
// sets something up, calls hits while tracers come and go, and compares. It ends with 0 if all is as before, 77 if the system lacks it.
var preserved = []struct{ name, source string }{
	{"vector registers", `
int main(void) {
	static const double want[4] = { 1.5, -2.25, 1e300, 4e-300 };
	double got[4];
	while (more()) {
		__asm__ volatile ("movupd (%0), %%xmm3\n\tmovupd 16(%0), %%xmm14" :: "r" (want) : "xmm3", "xmm14");
		DTRACE_PROBE2(keep___vector, long, 7, char *, "text");
		__asm__ volatile ("movupd %%xmm3, (%0)\n\tmovupd %%xmm14, 16(%0)" :: "r" (got) : "memory");
		if (memcmp(want, got, sizeof got)) return 1;
	}
	return 0;
}`},
	{"blocked and queued signals", `
int main(void) {
	sigset_t set, now; sigemptyset(&set); sigaddset(&set, SIGRTMIN); sigaddset(&set, SIGUSR1); sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, 0);
	for (int i = 0; i < 5; i++) { union sigval v; v.sival_int = i; sigqueue(getpid(), SIGRTMIN, v); }
	for (int i = 0; more(); i++) DTRACE_PROBE2(keep___blocked, int, i, char *, i % 2 ? "text" : 0);
	sigprocmask(SIG_BLOCK, 0, &now);
	for (int s = 1; s < 64; s++) if (s != SIGRTMIN && s != 32 && s != 33 && sigismember(&now, s) != sigismember(&set, s)) return 1;
	for (int i = 0; i < 5; i++) { siginfo_t info; if (sigwaitinfo(&set, &info) != SIGRTMIN || info.si_value.sival_int != i) return 2; }
	return 0;
}`},
	{"the life of a thread that blocks SIGSEGV, and passes an address where nothing is", `
int main(void) {
	sigset_t set; sigemptyset(&set); sigaddset(&set, SIGSEGV); signal(SIGSEGV, SIG_IGN); sigprocmask(SIG_BLOCK, &set, 0);
	hits();
	return 0;
}`},
	{"handlers", `
static volatile int got;
static void handler(int s, siginfo_t *i, void *u) { got = s; siglongjmp(*(sigjmp_buf *)at, 1); }
int main(void) {
	static sigjmp_buf back; struct sigaction a, now; memset(&a, 0, sizeof a); a.sa_sigaction = handler; a.sa_flags = SA_SIGINFO; at = &back;
	sigaction(SIGSEGV, &a, 0); sigaction(SIGILL, &a, 0);
	hits();
	sigaction(SIGSEGV, 0, &now); if (now.sa_sigaction != handler) return 1;
	if (!sigsetjmp(back, 1)) *(volatile int *)8 = 1;
	return got == SIGSEGV ? 0 : 3;
}`},
	{"alternative stack", `
int main(void) {
	static char memory[65536]; stack_t want = { .ss_sp = memory, .ss_size = sizeof memory }, got;
	sigaltstack(&want, 0); hits(); sigaltstack(0, &got);
	return got.ss_sp != memory || got.ss_size != sizeof memory || got.ss_flags;
}`},
	{"robust list", `
int main(void) {
	void *before, *after; size_t size;
	if (syscall(SYS_get_robust_list, 0, &before, &size)) return 77;
	hits(); syscall(SYS_get_robust_list, 0, &after, &size);
	return before != after;
}`},
	{"restartable sequences are registered", `
int main(void) {
	static char area[64] __attribute__((aligned(32))); /* EBUSY as long as the C library's is registered, which is so before, too */
	long before = syscall(SYS_rseq, area, 32, 0, 0x53053053), error = errno; if (!before) return 77;
	hits(); return syscall(SYS_rseq, area, 32, 0, 0x53053053) != before || errno != error;
}`},
	{"a seccomp filter is in force", `
int main(void) {
	struct sock_filter f[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 99), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog p = { 4, f };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) return 77;
	while (more()) { DTRACE_PROBE1(keep___filter, char *, "text"); if (syscall(SYS_getppid) != -1 || errno != 99) return 1; }
	return 0;
}`},
	{"a time stamp counter that must not be read", `
int main(void) { if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)) return 77; for (int i = 0; i < 600; i++) { DTRACE_PROBE1(keep___tsc, int, i); if (!i) write(1, "ready\n", 6); usleep(1000); } return 0; }`},
	{"a thread pointer of the program's own", `
int main(void) {
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(page + 4096, 4096);
	unsigned long own; syscall(SYS_arch_prctl, 0x1003, &own);
	for (int i = 0; more(); i++) {
		register long r __asm__("rax") = SYS_arch_prctl; long result;
		__asm__ volatile ("syscall" : "=a" (result) : "0" (r), "D" (0x1002L), "S" (page + 4096 - 16) : "rcx", "r11", "memory");
		DTRACE_PROBE1(keep___pointer, int, i);
		__asm__ volatile ("syscall" : "=a" (result) : "0" (r), "D" (0x1002L), "S" (own) : "rcx", "r11", "memory");
	}
	return 0;
}`},
	{"a stack pointer that is none", `
int main(void) {
	while (more()) {
		long saved;
		__asm__ volatile ("mov %%rsp, %%rbx\n\tmovabs $0x123456789, %%rsp\n" DTRACE_HIT "\n\tmov %%rbx, %%rsp" : "=a" (saved) :: "rbx", "memory");
	}
	return 0;
}`},
	{"what the process is", `
int main(void) {
	int deathsig, dumpable = prctl(PR_GET_DUMPABLE); struct itimerval t = { { 100, 0 }, { 100, 0 } };
	prctl(PR_SET_PDEATHSIG, SIGUSR2); setitimer(ITIMER_REAL, &t, 0); umask(027); int files = count("/proc/self/fd");
	hits();
	prctl(PR_GET_PDEATHSIG, &deathsig); getitimer(ITIMER_REAL, &t);
	return deathsig != SIGUSR2 ? 1 : prctl(PR_GET_DUMPABLE) != dumpable ? 2 : t.it_value.tv_sec < 90 ? 3 : umask(0) != 027 ? 4 : count("/proc/self/fd") != files ? 5 : 0;
}`},
	{"life, where each hit is a fault", `
int main(void) { while (more()) for (int i = 0; i < 100; i++) DTRACE_PROBE1(keep___fault, char *, (char *)(0x123456000 + i)); return 0; }`},
	{"room for the heap", `
int main(void) { char *before = sbrk(0); hits(); return sbrk(1000L << 20) == (void *)-1 || (char *)sbrk(0) - before < 1000L << 20; }`},
	{"stacks that are unwound in handlers", `
static volatile int inside, cut, total;
static __attribute__((noinline)) void deep(int n) { if (n) { deep(n - 1); __asm__ volatile (""); return; } inside = 1; for (long i = 0; i < 200000; i++) DTRACE_PROBE2(keep___deep, long, i, char *, "text"); inside = 0; }
static void handler(int s) { void *frames[64]; int n = backtrace(frames, 64); if (!inside) return; total++; if (n < 12) cut++; }
int main(void) {
	void *warm[4]; backtrace(warm, 4); signal(SIGPROF, handler);
	struct itimerval t = { { 0, 1000 }, { 0, 1000 } }; setitimer(ITIMER_PROF, &t, 0);
	while (more()) deep(12);
	if (total < 10) return 3;
	if (cut) fprintf(stderr, "%d of %d stacks were cut\n", cut, total);
	return cut != 0;
}`},
}

const preservedHead = `#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <sdt.h>
#define DTRACE_HIT "990:\tnop\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n" \
	"993:\t.8byte 990b,0,0\n.asciz \"keep\"\n.asciz \"odd\"\n.asciz \"8@$1\"\n994:\t.balign 4\n.popsection\n"
static void *at;
/* more returns 1 for 600 ms. */
static int more(void) {
	static struct timespec begun; struct timespec now; static int ready;
	clock_gettime(CLOCK_MONOTONIC, &now); if (!begun.tv_sec) begun = now;
	if (!ready) { ready = 1; fputs("ready\n", stdout); fflush(stdout); }
	return (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < 600;
}
static void hits(void) { for (int i = 0; more(); i++) { DTRACE_PROBE3(keep___hit, int, i, char *, "text", char *, (char *)(i % 3 ? 0 : 0x123456000)); } }
static int count(const char *directory) { int n = 0; DIR *d = opendir(directory); while (readdir(d)) n++; closedir(d); return n; }
`

// What a thread and a process have is there after tracers have come and gone, with jumps and with breakpoints, and after a run under trace.
func TestPreserved(t *testing.T) {
	parallel(t)
	for _, c := range preserved {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"-fno-omit-frame-pointer"}
			if c.name == "room for the heap" {
				flags = append(flags, "-no-pie", "-static")
			}
			program := compile(t, gcc(), write(t, "keep.c", preservedHead+c.source), flags...)
			got := tools.Command{}.Result(t, converter, "trace", "-c", "--", program)
			if got.Status == 77 {
				tools.Unavailable(t, "the system lacks it")
				return
			}
			expect.Equal(t, 0, got.Status, "started with -c: %s", got.Stderr)
			got = tools.Command{}.Result(t, converter, "trace", "--allow-none", "--filter", `name == "none"`, "--", program)
			expect.Equal(t, 0, got.Status, "started: %s", got.Stderr)
			cmd := exec.Command(program)
			out := expect.Value(cmd.StdoutPipe())(t)
			expect.OK(t, cmd.Start())
			out.Read(make([]byte, 6))
			done := make(chan error)
			go func() { done <- cmd.Wait() }()
			for times := 0; ; times++ {
				select {
				case err := <-done:
					expect.OK(t, err)
					if times == 0 {
						t.Error("no tracer has attached")
					}
					return
				case <-time.After(20 * time.Millisecond):
				}
				args := []string{"trace", "-n", "20", "--for", "200ms", "-p", strconv.Itoa(cmd.Process.Pid)}
				switch times % 3 {
				case 1:
					args = append(args, "-c")
				case 2:
					args = append(args, "--breakpoints")
				}
				exec.Command(converter, args...).Run() // it fails if the program has just ended
			}
		})
	}
}

// behind are instructions that stand behind a site of one byte, of which the tracer moves some. %d is a number, %s a label that is new.
var behind = []string{
	"movl $%d,%%eax", "addq $%d,%%rbx", "adcq $%d,%%rcx", "sbbl $%d,%%edx", "cmpq $%d,%%rsi", "testl $%d,%%r10d", "andl $%d,%%r11d", "xorq $%d,%%r12",
	"imulq $%d,%%rdi,%%rsi", "movabsq $0x1234567887654321,%%r9", "pushq $%d\n\tpopq %%rax", "leaq %d(%%rax,%%rbx,4),%%rcx",
	"leaq data+8(%%rip),%%rcx", "movq data+16(%%rip),%%rdx", "addl %%esi,data+24(%%rip)", "cmpl $%d,data(%%rip)", "movb $7,data+3(%%rip)", "adcq data+8(%%rip),%%rax",
	"cmovneq data+8(%%rip),%%rbx", "lock xaddq %%r8,data+32(%%rip)", "rorq $5,data+40(%%rip)", "movups data(%%rip),%%xmm1\n\tmovq %%xmm1,%%r13", "cvtsi2sdl data(%%rip),%%xmm2\n\tmovq %%xmm2,%%r14",
	"movq -24(%%rsp),%%r15", "movl $%d,-40(%%rsp)\n\tmovl -40(%%rsp),%%eax", "movq 0x100(%%rsp),%%r15", "vpaddd data(%%rip),%%xmm1,%%xmm3\n\tvmovq %%xmm3,%%r13",
	".byte 0xe9\n\t.long %s-.-4\n\t.skip 9,0x90\n%[1]s:", ".byte 0x0f,0x85\n\t.long %s-.-4\n\taddq $3,%%rax\n%[1]s:", ".byte 0x0f,0x8c\n\t.long %s-.-4\n\taddq $5,%%rax\n%[1]s:",
	"jc %s\n\taddq $9,%%rax\n%[1]s:", "call add", "call *pointer(%%rip)", "leaq add(%%rip),%%rax\n\tcall *%%rax", "nopw 0x100(%%rax)", "cqto", "rep stosb",
	// Less than four bytes: what follows moves, too.
	"testq %%rbx,%%rbx", "addl %%eax,%%ebx", "adcb %%r12b,%%r13b", "xchgq %%rax,%%rcx", "pushq %%r9\n\tpopq %%r10", "cltq\n\tmovl $%d,%%esi", "setc %%al", "stc\n\tclc\n\tcmc",
	"testb %%r12b,%%r12b\n\t.byte 0x0f,0x85\n\t.long %s-.-4\n\taddq $3,%%rax\n%[1]s:", "sbbl %%edx,%%eax\n\t.byte 0xe9\n\t.long %s-.-4\n\t.skip 9,0x90\n%[1]s:",
	"cmpl %%ecx,%%edi\n\tadcq data+8(%%rip),%%rax", "shlq %%cl,%%r8\n\tcall *pointer(%%rip)",
}

// movedProgram returns an assembly program that executes each site with random registers and flags, and takes in what the instruction has done.
func movedProgram(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("\t.text\n\t.globl run\nrun:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\tsub $0x208,%rsp\n\tlea -0x80(%rsp),%rdi\n\tmov $0x51,%ecx\n\tmov $0x77,%eax\n\trep stosq\n")
	for i := range 300 {
		for _, register := range strings.Fields("rax rbx rcx rdx rsi rdi r8 r9 r10 r11 r12 r13 r14 r15") {
			fmt.Fprintf(&b, "\tmovabsq $%#x,%%%s\n", r.Uint64()>>r.IntN(60), register)
		}
		b.WriteString("\tpxor %xmm1,%xmm1\n")
		template := behind[r.IntN(len(behind))]
		if template == "rep stosb" {
			b.WriteString("\tleaq data+64(%rip),%rdi\n\tandl $31,%ecx\n")
		}
		fmt.Fprintf(&b, "\txorl %%ebp,%%ebp\n\tmovl $%d,%%ebp\n\tpush %%rbp\n\tpopf\n\tmovl $0,%%ebp\n", []int{0x202, 0x246, 0x293, 0xa83, 0x2d7}[r.IntN(5)])
		argument := any(r.Int32N(1 << 30))
		if strings.Contains(template, "%s") {
			argument = fmt.Sprintf(".Lbehind%d", i)
		}
		instruction := strings.ReplaceAll(template, "%%", "%")
		if strings.ContainsAny(template, "ds") && (strings.Contains(template, "$%d") || strings.Contains(template, "%s") || strings.Contains(template, "%d(")) {
			instruction = fmt.Sprintf(template, argument)
		}
		sites := 1 + max(0, r.IntN(10)-7) // one behind the other: only the last has room
		for site := range sites {
			fmt.Fprintf(&b, "98%d:\tnop\n", site)
		}
		fmt.Fprintf(&b, "\t%s\n\tcall take\n", instruction)
		for site := range sites {
			fmt.Fprintf(&b, "\t.pushsection .note.stapsdt,\"?\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 98%db,0,0\n\t.asciz \"moved\"\n\t.asciz \"n%d-%d\"\n\t.asciz \"8@%%rax 8@%%rbx\"\n994:\t.balign 4\n\t.popsection\n", site, i, site)
		}
	}
	b.WriteString(`	add $0x208,%rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret
add:	addq $77,%rbx
	ret
take:	pushf
`)
	for _, register := range strings.Fields("rax rbx rcx rdx rsi rdi r8 r9 r10 r11 r12 r13 r14 r15") {
		fmt.Fprintf(&b, "\tpush %%%s\n", register)
	}
	b.WriteString(`	mov %rsp,%rdi
	mov %rsp,%rbx
	and $-16,%rsp
	call digest@PLT
	mov %rbx,%rsp
	add $120,%rsp
	ret
	.data
	.globl data
	.balign 16
data:	.fill 32,8,0x1122334455667788
pointer: .quad add
	.section .note.GNU-stack,"",@progbits
`)
	return b.String()
}

const movedMain = `
#include <stdio.h>
#include <unistd.h>
extern void run(void);
extern unsigned long data[32];
static unsigned long sum;
char room[ROOM]; /* to which jumps would lead */
/* digest takes in 14 registers and the flags; addresses of the program are left out. */
void digest(unsigned long *saved) {
	for (int i = 0; i < 15; i++) {
		unsigned long v = i == 14 ? saved[i] & 0x8c1 : saved[i];
		if (v - (unsigned long)data + (1UL << 20) < 1UL << 21 || v > 0x7f0000000000UL && v < 0x800000000000UL) v = 1;
		sum = sum * 6364136223846793005UL + v;
	}
	for (int i = 0; i < 16; i++) sum = sum * 31 + data[i];
}
int main(void) {
	for (int i = 0; i < 60; i++) { run(); if (i % 20 == 0) usleep(1000); }
	printf("%lx\n", sum);
	return 0;
}
`

// Instructions that the tracer moves do what they do in their place.
func TestMovedInstructions(t *testing.T) {
	needPtrace(t)
	traps, sites := 0, 0
	for seed := range tools.Cases(t, 12) {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		link := [][]string{nil, {"-no-pie"}, {"-static"}}[seed%3]
		program := compile(t, gcc(), write(t, "moved.c", movedMain), append([]string{write(t, "run.s", movedProgram(r)), "-mavx", "-DROOM=" + []string{"1", "1<<30"}[seed%2]}, link...)...)
		want := tools.Output(t, program)
		got := tools.Command{}.Result(t, converter, "trace", "-c", "--", program)
		expect.Equal(t, 0, got.Status, "seed %d: %s", seed, got.Stderr)
		expect.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got.Stdout[:strings.Index(got.Stdout+"\n", "\n")]), "seed %d: %s", seed, got.Stderr)
		for name, hits := range counts(got.Stdout) {
			expect.Equal(t, 60, hits, "seed %d: %s", seed, name)
		}
		sites += len(counts(got.Stdout))
		if match := breakpointLine.FindStringSubmatch(got.Stderr); match != nil {
			traps += expect.Value(strconv.Atoi(match[1]))(t)
		}
	}
	t.Logf("%d of %d sites have breakpoints", traps, sites)
	if traps > sites/3 {
		t.Errorf("%d of %d sites have breakpoints", traps, sites)
	}
}

var breakpointLine = regexp.MustCompile(`(\d+) sites? armed by breakpoints`)
