/*
 * Prints the probes of a program as they fire, without root and without a change
 * of the program:
 *
 *	cc -O2 -fPIC -shared -o agent.so agent.c
 *	PROBES='app:::request-*' LD_PRELOAD=./agent.so ./app
 */
#include <sdt_agent.h>

#include <stdio.h>
#include <stdlib.h>

static void hit(const struct sdt_agent_hit *h, void *data)
{
	const struct sdt_agent_site *s = h->site;
	const char *type = s->types, *end;
	char line[512];
	int i, n = snprintf(line, sizeof line, "%s:%s:%s:%s", s->provider, s->module, s->function, s->name);

	(void)data;
	for (i = 0; i < h->count && s->types[0] != 0 && n < 400; i++, type = end + 2 * (*end != 0)) {
		end = strstr(type, "; ") != NULL ? strstr(type, "; ") : type + strlen(type);
		if (!(h->known >> i & 1))
			n += snprintf(line + n, 80, " ?");
		else if (strncmp(type, "char *", 6) == 0 || strncmp(type, "const char *", 12) == 0)
			n += snprintf(line + n, 80, " \"%.60s\"", (const char *)h->args[i]);
		else
			n += snprintf(line + n, 80, " %ld", (long)h->args[i]);
	}
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		_exit(1);
}

__attribute__((constructor)) static void begin(void)
{
	const char *probes = getenv("PROBES");
	int n;

	sdt_agent_start();
	if ((n = sdt_agent_on(probes != NULL ? probes : "", hit, NULL)) < 0)
		fprintf(stderr, "agent: %s\n", sdt_agent_reason(n));
}

__attribute__((destructor)) static void end(void)
{
	sdt_agent_off("");
}
