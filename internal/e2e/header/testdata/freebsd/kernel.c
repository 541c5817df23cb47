/*
 * A source of a kernel, with tracepoints of all kinds. sys/sdt.h of the directories
 * beside this file is as much of FreeBSD's as that takes, of two generations.
 */
#include <sys/param.h>
#include <sys/queue.h>
#include <sys/sdt.h>

SDT_PROVIDER_DEFINE(net);
SDT_PROBE_DEFINE0(net, , , none);
SDT_PROBE_DEFINE1(net, mod, func, one, "int");
SDT_PROBE_DEFINE2(net, , , two__words, "char *", "long");
SDT_PROBE_DEFINE(net, , , five);
SDT_PROBE_DEFINE(net, , , seven);

int fire(int n, char *text, long bits);

int
fire(int n, char *text, long bits)
{
	SDT_PROBE0(net, , , none);
	if (n > 1)
		SDT_PROBE1(net, mod, func, one, n > 2 ? n : -1);
	else
		SDT_PROBE1(net, mod, func, one, n);
	SDT_PROBE2(net, , , two__words, text, bits);
	SDT_PROBE3(net, , , five, text, bits, 1);
	SDT_PROBE(net, , , five, text, bits, 1, 2, 3);
	SDT_PROBE7(net, , , seven, text, bits, 1, 2, 3, 4, 5);
	DTRACE_PROBE1(inside, int, n);
	if (SDT_PROBE_ENABLED(net, , , none) && __predict_false(SDT_PROBE_ENABLED(net, mod, func, one)))
		return (1);
	return (n);
}
