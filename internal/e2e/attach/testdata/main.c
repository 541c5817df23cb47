/* Runs the probes once for each line of its input. */
#include <stdio.h>

void app_run(int n);

int main(void)
{
	char line[16];
	int n = 0;

	setvbuf(stdout, 0, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof line, stdin))
		app_run(++n);
	return 0;
}
