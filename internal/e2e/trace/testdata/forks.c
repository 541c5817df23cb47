// Forks children that hit a probe, until it gets SIGTERM. Says how many have not ended as they should.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sdt.h>

static volatile sig_atomic_t stop;

static void end(int signal)
{
	stop = signal;
}

__attribute__((noinline)) static void work(int i)
{
	DTRACE_PROBE1(forks___work, int, i);
}

int main(void)
{
	int bad = 0;
	signal(SIGTERM, end);
	while (!stop) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			for (int i = 0; i < 200; i++)
				work(i);
			_exit(0);
		}
		while (child > 0 && waitpid(child, &status, 0) < 0)
			;
		bad += child > 0 && status != 0;
	}
	printf("%d bad\n", bad);
}
