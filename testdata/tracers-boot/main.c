/*
 * Runs rounds, and prints of each whether its guard was true: so many, from a number on;
 * with "fork" in front in a parent and then, from 101 on, in its child; without arguments those whose
 * numbers it reads. With LIBRARY it loads the rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY
#include <dlfcn.h>
static int (*shop_round)(long);
#else
int shop_round(long n);
#endif

static void run(const char *who, long times, long first)
{
	for (long n = first; n < first + times; n++)
		printf("%s %ld %d\n", who, n, shop_round(n));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[16];
	int status = 0;

	setvbuf(stdout, 0, _IOLBF, 0);
#ifdef LIBRARY
	void *library = dlopen(LIBRARY, RTLD_NOW);

	if (!library || !(shop_round = (int (*)(long))dlsym(library, "shop_round"))) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
#endif
	if (argc == 3 && strcmp(argv[1], "fork") == 0) {
		run("parent", atol(argv[2]), 1);
		if (fork() == 0) {
			run("child", atol(argv[2]), 101);
			_exit(0);
		}
		return wait(&status) < 0 || status != 0;
	}
	if (argc > 1) {
		run("all", atol(argv[1]), argc > 2 ? atol(argv[2]) : 1);
		return 0;
	}
	while (fgets(line, sizeof line, stdin))
		run("read", 1, atol(line));
	return 0;
}
