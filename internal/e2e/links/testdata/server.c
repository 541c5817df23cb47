/*
 * A program with a probe that runs threads in the library, tells where its
 * records and the library's are, and waits for its input to end.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "served.h"

void __dtrace_probe_server___start(int);
int sdt_server___start;

extern struct record __start_sdt_instances_set[] __attribute__((weak));
extern struct record __stop_sdt_instances_set[] __attribute__((weak));

void show(const char *what, const struct record *start, const struct record *stop)
{
	for (; start < stop; start++)
		printf("%s %#lx\n", what, (unsigned long)start->offset);
}

static void *thread(void *unused)
{
	served_loop();
	return unused;
}

int main(void)
{
	pthread_t threads[3];
	char c;

	__dtrace_probe_server___start(3);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], 0, thread, 0))
			return 1;
	show("program", __start_sdt_instances_set, __stop_sdt_instances_set);
	served_show();
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) != 0;
}
