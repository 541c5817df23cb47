/* A program that does its worst to a tracer: twin VICTIM SEED. It finds what the tracer has put into it, and overwrites, unmaps, forges and swaps
   it, in threads and in a process that shares its descriptors and is not traced. It may die of that; the tracer, files and others may not. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <sdt.h>

static const char *victim;
static char **arguments;
static unsigned long state;

static unsigned long any(void) /* xorshift; races do no harm */
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static unsigned long word(void)
{
	switch (any() % 6) {
	case 0: return 0;
	case 1: return ~0UL;
	case 2: return any() % 64;
	case 3: return 1UL << any() % 64;
	case 4: return any() % 4096 << 32 | any() % 4;
	}
	return any();
}

/* A mapping of the tracer's: code without a file, or shared memory. */
static int find(unsigned long *start, unsigned long *end)
{
	char line[600], path[500], flags[8];
	int found = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	if (!f) return 0;
	while (fgets(line, sizeof line, f)) {
		unsigned long a, b;
		*path = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %499s", &a, &b, flags, path) < 3) continue;
		if ((strstr(path, "memfd:sdtconvert") || strstr(path, "/dev/zero") || (flags[2] == 'x' && !*path)) && any() % ++found == 0) *start = a, *end = b;
	}
	fclose(f);
	return found;
}

static void swap_descriptor(void)
{
	int fd = 3 + any() % 12, file = open(victim, O_RDONLY), kind = any() % 5;
	if (kind == 0) ftruncate(fd, any() % 2 ? 0 : any() % 100000);
	if (kind == 1 && file >= 0) dup2(file, fd);
	if (kind == 2) close(fd);
	if (kind == 3) {
		int other = syscall(SYS_memfd_create, "sdtconvert", MFD_ALLOW_SEALING | (any() % 3 ? 0 : MFD_HUGETLB));
		if (other >= 0) { ftruncate(other, any() % 40 << 20); dup2(other, fd); if (other != fd) close(other); }
	}
	if (kind == 4) { int p[2]; if (!pipe(p)) { dup2(p[0], fd); close(p[0]); close(p[1]); } }
	if (file >= 0 && file != fd) close(file);
}

static int swapper(void *x)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	union sigval value = { 1 };
	for (long storm = any() % 3;;) {
		swap_descriptor();
		if (!storm) sigqueue(getppid(), SIGRTMIN + 1, value);
	}
	return 0;
}

static void forge(void)
{
	unsigned long at = (0x10000000UL + any() % 4096 * 0x100000) & ~0xfffffUL;
	char *area = mmap((void *)at, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (area == MAP_FAILED) return;
	for (int i = 0; i < 4000; i++) ((unsigned long *)area)[any() % 33000] = word();
	memcpy(area, "sdtconvert trac3", 16);
	if (any() % 4 == 0) memcpy(area + (252 << 10), "\xeb\xfe", 2); /* code that never leaves, where calls are made */
	mprotect(area, 1 << 20, PROT_READ | PROT_EXEC);
	pthread_t t;
	if (any() % 8 == 0) pthread_create(&t, 0, (void *(*)(void *))(void *)(area + (252 << 10)), 0);
}

static void attack(void)
{
	unsigned long start, end;
	switch (any() % 12) {
	case 0: case 1: case 2: case 3:
		if (find(&start, &end)) {
			mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC);
			unsigned long length = end - start, near = any() % 3 ? 4096 : length;
			for (int i = 0; i < 50; i++) ((volatile unsigned long *)start)[any() % (near < length ? near : length) / 8] = word();
		}
		break;
	case 4:
		if (find(&start, &end)) mprotect((void *)start, 4096UL << any() % 4, any() % 2 ? PROT_NONE : PROT_READ);
		break;
	case 5:
		if (any() % 4 == 0 && find(&start, &end)) munmap((void *)start, 4096UL << any() % 8);
		break;
	case 6: forge(); break;
	case 7: swap_descriptor(); break;
	case 8: { char name[16]; for (int i = 0; i < 15; i++) name[i] = 1 + any() % 255; name[15] = 0; prctl(PR_SET_NAME, name); break; }
	case 9:
		if (!fork()) { if (any() % 3) _exit(0); DTRACE_PROBE2(twin___child, int, 1, char *, "a\033]0;b\a"); execv("/proc/self/exe", arguments); _exit(1); }
		break;
	case 10:
		if (any() % 64 == 0) raise(SIGTRAP);
		break;
	case 11: { char path[300], to[320]; ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1); if (n > 0) { path[n] = 0; snprintf(to, sizeof to, "%s.%lu", path, any() % 4); rename(path, to); rename(to, path); } }
	}
	while (waitpid(-1, 0, WNOHANG) > 0);
}

static void *hit(void *x)
{
	for (unsigned long i = 0;; i++) {
		DTRACE_PROBE3(twin___hit, long, i, char *, i % 7 ? "\033[31m\x9b\xe2\x80\xae" : (char *)word(), char *, (char *)x);
		if (i % 64 == 0) usleep(any() % 200);
	}
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t;
	time_t end = time(0) + 3;
	if (argc < 3) return 1;
	victim = argv[1];
	arguments = argv;
	state = strtoul(argv[2], 0, 10) * 2654435761UL + getpid();
	signal(SIGTRAP, any() % 2 ? SIG_IGN : SIG_DFL);
	signal(SIGRTMIN + 1, SIG_IGN);
	clone(swapper, (char *)malloc(65536) + 65536, CLONE_FILES | SIGCHLD, 0);
	for (int i = 0; i < 3; i++) pthread_create(&t, 0, hit, i ? "x" : 0);
	puts("ready");
	fflush(stdout);
	while (time(0) < end) {
		attack();
		usleep(any() % 500);
	}
	kill(0, SIGKILL);
}
