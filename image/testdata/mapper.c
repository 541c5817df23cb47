/* Maps files as code, each as often as the first argument says, and waits until its input ends. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int i, n;
	struct stat st;
	for (i = 2; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);
		if (fd < 0 || fstat(fd, &st))
			return 1;
		for (n = atoi(argv[1]); n > 0; n--)
			if (mmap(0, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
				return 1;
		close(fd);
	}
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
