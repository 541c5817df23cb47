/*
 * Arms all forms of probes, each with a uprobe that counts, and times them.
 *
 *	main SITES ROUNDS HITS
 *
 * SITES has a line for each form, its name and the address to arm. Each round hits
 * each form that many times, all forms in turns. Then each form is hit by a process
 * and its children at once. Prints a line for each form: `form', its name, the offset
 * of its site in the file, nanoseconds of a hit (the least of all rounds and the
 * median; 0 if the kernel refuses a uprobe there), the hits that were expected and those that were counted, and the children
 * that did not end well. Then `done'.
 *
 * It is linked statically, at the addresses it runs at. It may be the only program
 * of a machine, which it then halts.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "form.h"

#define UPROBE "/sys/bus/event_source/devices/uprobe/type"
#define MOST 64		/* forms */
#define REFUSED 524	/* errno, of an instruction that the kernel executes nowhere else */
#define CHILDREN 4
#define CHILD_HITS 500

extern const struct form __start_armed_forms[], __stop_armed_forms[];

#ifdef __x86_64__
/* Where converted sites return through, as in a kernel. */
__asm__(".text\n.globl __x86_return_thunk\n.type __x86_return_thunk,@function\n__x86_return_thunk:\n\tret\n\tint3");
#endif

struct work {
	const struct form *form;
	uint64_t offset;
	int *counters;		/* of each processor */
	unsigned long expected;	/* hits */
	int bad;		/* children */
	int refused;		/* the kernel arms no such site */
	double *ns;		/* of all rounds */
};

static struct work works[MOST];
static int count, processors;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* offset_of turns an address into an offset of the program's file. */
static uint64_t offset_of(unsigned long address)
{
	const Elf64_Phdr *segment = (const Elf64_Phdr *)getauxval(AT_PHDR);
	unsigned long i;

	for (i = 0; i < getauxval(AT_PHNUM); i++, segment++)
		if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_filesz)
			return address - segment->p_vaddr + segment->p_offset;
	fprintf(stderr, "no segment has the address 0x%lx\n", address);
	exit(1);
}

/*
 * arm opens a counter on each processor; the site is armed while they are open. One of
 * a process, which its children inherit, would miss hits of any site in children.
 */
static void arm(struct work *w, const char *path)
{
	struct perf_event_attr attr = { .size = sizeof attr, .config1 = (uintptr_t)path, .config2 = w->offset };
	FILE *file = fopen(UPROBE, "r");
	int i;

	if (!file || fscanf(file, "%u", &attr.type) != 1)
		die(UPROBE);
	fclose(file);
	for (i = 0; i < processors && !w->refused; i++)
		if ((w->counters[i] = (int)syscall(SYS_perf_event_open, &attr, -1, i, -1, PERF_FLAG_FD_CLOEXEC)) < 0) {
			if (i != 0 || errno != REFUSED)
				die("perf_event_open");
			w->refused = 1;
		}
}

static unsigned long counted(const struct work *w)
{
	uint64_t n, sum = 0;
	int i;

	for (i = 0; i < processors; i++) {
		if (read(w->counters[i], &n, sizeof n) != sizeof n)
			die("read");
		sum += n;
	}
	return (unsigned long)sum;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void hit(const struct work *w, unsigned long n)
{
	void (*volatile site)(unsigned long, unsigned long) = w->form->hit;
	unsigned long i;

	for (i = 1; i <= n; i++)
		site(i, n);
}

/* hits takes the nanoseconds of one of n hits. */
static double hits(struct work *w, unsigned long n)
{
	double start = now();

	hit(w, n);
	w->expected += n;
	return (now() - start) / (double)n;
}

/* stay binds this process to a processor: the counters miss hits of one that moves meanwhile. */
static void stay(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		die("sched_setaffinity");
}

static void fork_and_hit(struct work *w)
{
	int i, status;
	pid_t child;

	for (i = 0; i < CHILDREN; i++) {
		if ((child = fork()) < 0)
			die("fork");
		if (child == 0) {
			stay(i % processors);
			hit(w, CHILD_HITS);
			_exit(0);
		}
	}
	hit(w, CHILD_HITS);
	while ((child = wait(&status)) > 0)
		w->bad += status != 0;
	w->expected += (CHILDREN + 1) * CHILD_HITS;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* find reads SITES and arms all. */
static void find(const char *sites, int rounds)
{
	static char self[4096];
	const struct form *form;
	unsigned long address;
	FILE *file = fopen(sites, "r");
	char name[64];

	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
		die("/proc/self/exe");
	if (!file)
		die(sites);
	while (count < MOST && fscanf(file, "%63s %lx", name, &address) == 2) {
		for (form = __start_armed_forms; form < __stop_armed_forms && strcmp(form->name, name) != 0;)
			form++;
		if (form == __stop_armed_forms) {
			fprintf(stderr, "%s: no form is called %s\n", sites, name);
			exit(1);
		}
		works[count].form = form;
		works[count].offset = offset_of(address);
		works[count].counters = calloc((size_t)processors, sizeof(int));
		works[count].ns = calloc((size_t)rounds, sizeof(double));
		arm(&works[count], self);
		count++;
	}
	fclose(file);
}

static void measure(int rounds, unsigned long n)
{
	struct work *w;
	int round;

	for (round = 0; round < rounds; round++)
		for (w = works; w < works + count; w++)
			if (!w->refused)
				w->ns[round] = hits(w, n);
	for (w = works; w < works + count; w++) {
		if (w->refused) {
			printf("form %s %llu 0 0 0 0 0\n", w->form->name, (unsigned long long)w->offset);
			continue;
		}
		fork_and_hit(w);
		qsort(w->ns, (size_t)rounds, sizeof(double), ascending);
		printf("form %s %llu %.1f %.1f %lu %lu %d\n", w->form->name, (unsigned long long)w->offset, w->ns[0],
		    w->ns[rounds / 2], w->expected, counted(w), w->bad);
	}
}

int main(int argc, char **argv)
{
	int alone = getpid() == 1;

	if (argc != 4 || atoi(argv[2]) < 1 || atol(argv[3]) < 1) {
		fprintf(stderr, "usage: %s SITES ROUNDS HITS\n", argv[0]);
		return 2;
	}
	if (alone) {
		mkdir("/proc", 0755);
		mkdir("/sys", 0755);
		if (mount("proc", "/proc", "proc", 0, "") != 0 || mount("sysfs", "/sys", "sysfs", 0, "") != 0)
			die("mount");
	}
	processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
	stay(0);
	find(argv[1], atoi(argv[2]));
	measure(atoi(argv[2]), (unsigned long)atol(argv[3]));
	puts("done");
	fflush(stdout);
	if (alone)
		reboot(RB_AUTOBOOT);
	return 0;
}
