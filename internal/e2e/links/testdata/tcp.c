/*
 * A sample of the shape of FreeBSD's TCP stack: the functions and probes that
 * its bug 195222 wants to see listed, each probe in the functions that fire it.
 * Some functions are static, some fire two probes, some the same from two
 * places, and some calls are tail calls.
 */
struct provider {
	const char *name;
	void *entry[2];
	unsigned long id;
	int refs;
};

struct probe {
	int version;
	struct provider *prov;
	void *probe_entry[2];
	void *argtype_list[2];
	const char *mod, *func, *name;
	unsigned long id;
	int n_args;
	void *linker_file;
};

struct argtype {
	int ndx;
	const char *type, *xtype;
	void *entry[2];
	struct probe *probe;
};

static struct provider provider_tcp = { .name = "tcp" };

#define PROBE(id, text)                                                        \
	extern struct probe sdt_tcp___##id;                                    \
	struct probe sdt_tcp___##id = { .version = sizeof(struct probe),       \
		.prov = &provider_tcp, .mod = "", .func = "", .name = text,    \
		.n_args = 2 };                                                 \
	void __dtrace_probe_tcp___##id(unsigned long, unsigned long)

#define ARG(id, n, native, translated)                                         \
	static struct argtype arg_##id##_##n = { n, native, translated,        \
		{ 0 }, &sdt_tcp___##id };                                      \
	static struct argtype *set_##id##_##n                                  \
	    __attribute__((used, section("set_sdt_argtypes_set"))) =           \
		&arg_##id##_##n

PROBE(accept__established, "accept__established");
PROBE(accept__refused, "accept__refused");
PROBE(connect__established, "connect__established");
PROBE(connect__refused, "connect__refused");
PROBE(connect__request, "connect__request");
PROBE(receive, "receive");
PROBE(send, "send");
PROBE(state__change, "state__change");
ARG(receive, 1, "struct mbuf *", "pktinfo_t *");
ARG(receive, 0, "struct tcpcb *", "csinfo_t *");
ARG(state__change, 0, "struct tcpcb *", 0);

#define FIRE(id, a, b)                                                         \
	__dtrace_probe_tcp___##id((unsigned long)(a), (unsigned long)(b))

enum { CLOSED, LISTEN, SYN_SENT, SYN_RECEIVED, ESTABLISHED };
enum { SYN = 2, RST = 4, ACK = 16 };

struct tcpcb {
	int state;
	int retries;
	unsigned flags;
};

volatile int sink;

__attribute__((noinline)) void tcp_state_change(struct tcpcb *tp, int state)
{
	int old = tp->state;

	tp->state = state;
	FIRE(state__change, tp, old);
}

__attribute__((noinline)) void tcp_drop(struct tcpcb *tp, int error)
{
	sink = error;
	tp->state = CLOSED;
	FIRE(state__change, tp, error);
	tp->retries = 0;
}

__attribute__((noinline)) static void tcp_respond(struct tcpcb *tp, unsigned flags)
{
	if (flags & RST)
		FIRE(accept__refused, tp, flags);
	sink = (int)flags;
	FIRE(send, tp, flags);
}

__attribute__((noinline)) int tcp_output(struct tcpcb *tp)
{
	if (tp->state == SYN_SENT)
		FIRE(connect__request, tp, tp->flags);
	FIRE(send, tp, tp->flags);
	return sink;
}

__attribute__((noinline)) static void tcp_do_segment(struct tcpcb *tp, unsigned flags)
{
	switch (tp->state) {
	case SYN_SENT:
		if (flags & RST) {
			FIRE(connect__refused, tp, flags);
			tcp_drop(tp, 61);
			return;
		}
		tcp_state_change(tp, ESTABLISHED);
		FIRE(connect__established, tp, flags);
		break;
	case SYN_RECEIVED:
		tcp_state_change(tp, ESTABLISHED);
		FIRE(accept__established, tp, flags);
		break;
	}
	sink += tcp_output(tp);
}

__attribute__((noinline)) void tcp_input(struct tcpcb *tp, unsigned flags)
{
	FIRE(receive, tp, flags);
	if (tp->state == CLOSED)
		tcp_respond(tp, RST | ACK);
	else
		tcp_do_segment(tp, flags);
}

int main(void)
{
	struct tcpcb tp = { SYN_SENT, 0, SYN };

	tcp_output(&tp);
	tcp_input(&tp, SYN | ACK);
	tp.state = SYN_RECEIVED;
	tcp_input(&tp, ACK);
	tp.state = SYN_SENT;
	tcp_input(&tp, RST);
	tcp_input(&tp, SYN);
	return 0;
}
