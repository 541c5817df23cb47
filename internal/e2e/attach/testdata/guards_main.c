/*
 * Runs a guarded probe, and tells whether its guard was true: so many times, or with
 * "fork" in front in a parent and then in its child; and without arguments once for each
 * line of its input. With LOADED, from the library that is the last argument.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LOADED
#include <dlfcn.h>
static int (*guarded)(long);
#else
int guarded(long n);
#endif

static void run(const char *who, int times)
{
	int n, hits = 0;

	for (n = 1; n <= times; n++)
		hits += guarded(n);
	printf("%s: %d of %d\n", who, hits, times);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[16];
	long n = 0;
	int status = 0;

	setvbuf(stdout, 0, _IOLBF, 0);
#ifdef LOADED
	void *library = dlopen(argv[--argc], RTLD_NOW);

	if (!library || !(guarded = (int (*)(long))dlsym(library, "guarded"))) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
#endif
	if (argc == 3 && strcmp(argv[1], "fork") == 0) {
		run("parent", atoi(argv[2]));
		if (fork() == 0) {
			run("child", atoi(argv[2]));
			_exit(0);
		}
		return wait(&status) < 0 || status != 0;
	}
	if (argc == 2) {
		run("all", atoi(argv[1]));
		return 0;
	}
	puts("ready");
	while (fgets(line, sizeof line, stdin))
		n++, printf("%ld: %d\n", n, guarded(n));
	return 0;
}
