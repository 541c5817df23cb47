/*
 * Runs the probes once for each line of its input, and once more in a child, which
 * has to live through it.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

void app_run(int n);

int main(void)
{
	char line[16];
	int n = 0, status;
	pid_t child;

	setvbuf(stdout, 0, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		app_run(++n);
		if ((child = fork()) == 0) {
			app_run(n);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			return 1;
	}
	return 0;
}
