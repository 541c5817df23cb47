/* Does what a process may do to who reads it: the files that are its arguments are mapped as code, the first many times; threads
   come and go; the name of the second file becomes that of a FIFO and back all the time; and a probe fires. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char **files;

static void *end(void *p) { return p; }

static void *come_and_go(void *p)
{
	pthread_t t;
	for (;;)
		if (!pthread_create(&t, 0, end, 0))
			pthread_join(t, 0);
	return p;
}

static void *exchange(void *p)
{
	for (;;)
		syscall(SYS_renameat2, AT_FDCWD, files[2], AT_FDCWD, "fifo", 2 /* RENAME_EXCHANGE */);
	return p;
}

static __attribute__((noinline)) void work(void)
{
	__asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 8,994f-993f,3\n.asciz \"stapsdt\"\n"
		"993:.8byte 990b\n.8byte 0\n.8byte 0\n.asciz \"hostile\\033\\2331m\"\n.asciz \"fires\\342\\200\\256\\007\"\n.asciz \"\"\n994:.balign 4\n.popsection\n");
}

int main(int argc, char **argv)
{
	pthread_t t;
	int i, n;
	files = argv;
	for (i = 1; i < argc; i++) {
		struct stat st;
		int fd = open(argv[i], O_RDONLY);
		if (fd < 0 || fstat(fd, &st))
			return 1;
		for (n = i == 1 ? 2000 : 1; n > 0; n--)
			if (mmap(0, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
				return 1;
		close(fd);
	}
	mkfifo("fifo", 0666);
	for (i = 0; i < 3; i++)
		pthread_create(&t, 0, come_and_go, 0);
	pthread_create(&t, 0, exchange, 0);
	puts("ready");
	fflush(stdout);
	for (;;) {
		work();
		usleep(1000);
	}
}
