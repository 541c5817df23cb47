/*
 * A program with two probes that lists its own probes, as sdt_agent.h finds them.
 * Tracers find the same probes by notes.
 */
#include <sdt_agent.h>

#include <stdio.h>

#include <sdt.h>

SDT_PROVIDER_DEFINE(hello);
SDT_PROBE_DEFINE2(hello, , , greet, "char *", "int");
SDT_PROBE_DEFINE1(hello, , , done, "int");

__attribute__((noinline)) static int greet(const char *name)
{
	int length = printf("Hello, %s!\n", name);

	if (SDT_PROBE_ENABLED(hello, , , greet))
		SDT_PROBE2(hello, , , greet, name, length);
	return length;
}

static int show(const struct sdt_agent_site *site, void *data)
{
	(void)data;
	printf("probe %s:%s:%s:%s at %#lx\n", site->provider, site->module, site->function, site->name, (unsigned long)site->address);
	return 0;
}

int main(int argc, char **argv)
{
	int length = greet(argc > 1 ? argv[1] : "world");

	SDT_PROBE1(hello, , , done, length);
	sdt_agent_start();
	sdt_agent_each("hello:::", show, NULL);
	return length < 0;
}
