/*
 * Probe objects that are static in C++: of functions, of what several objects share (both
 * files that are made of this one have it, and one copy is linked), and of namespaces.
 */
struct sdt_probe {
	long words[12];
};

#define OBJECT(id) struct sdt_probe sdt_##id[1] __attribute__((used)) = { { { 96 } } }

extern "C" {
void __dtrace_probe_st___function(int);
void __dtrace_probe_st___inlined(int);
void __dtrace_probe_st___templated(int);
void __dtrace_probe_st___lambda(int);
void __dtrace_probe_st___space(int);
void __dtrace_probe_st___open(int);
void __dtrace_probe_st___made(int);
void statics_first(int n);
void statics_second(int n);
}

#ifdef SECOND
#define FUNCTION statics_second
#else
#define FUNCTION statics_first
#endif

#define NOINLINE __attribute__((noinline))

volatile int *statics_sink();

NOINLINE inline void statics_inline(int n)
{
	static OBJECT(st___inlined);
	__dtrace_probe_st___inlined(n);
	*statics_sink() = n;
}

template <class T> NOINLINE void statics_template(T n)
{
	static OBJECT(st___templated);
	__dtrace_probe_st___templated(n);
	*statics_sink() = n;
}

struct statics_class {
	NOINLINE statics_class(int n)
	{
		static OBJECT(st___made);
		__dtrace_probe_st___made(n);
		*statics_sink() = n;
	}
};

namespace statics1 {
static OBJECT(st___space);
static NOINLINE void inside(int n)
{
	__dtrace_probe_st___space(n);
	*statics_sink() = n;
}
}

#ifndef SECOND
namespace statics1 {
OBJECT(st___open);
NOINLINE void open(int n)
{
	__dtrace_probe_st___open(n);
	*statics_sink() = n;
}
}
#endif

void FUNCTION(int n)
{
	static OBJECT(st___function);
	__dtrace_probe_st___function(n);
	auto lambda = [](int m) NOINLINE {
		static OBJECT(st___lambda);
		__dtrace_probe_st___lambda(m);
		*statics_sink() = m;
	};
	lambda(n);
	statics_inline(n);
	statics_template(n);
	statics_template((long)n);
	statics_class made(n);
	statics1::inside(n);
#ifndef SECOND
	statics1::open(n);
	statics_second(n);
#endif
}

#ifdef SECOND
static volatile int sink;
volatile int *statics_sink() { return &sink; }
int main(void)
{
	statics_first(1);
	return sink != 1;
}
#endif
