/*
 * Inline functions, templates and classes with probes, for comdat.cc and
 * program2.cc: each object has its copies in COMDAT groups, and a link keeps
 * one. No header is needed.
 */
typedef unsigned long word;

extern "C" {
void __dtrace_probe_cxx___inline(word);
void __dtrace_probe_cxx___template(word);
void __dtrace_probe_cxx___member(const void *, word);
void __dtrace_probe_cxx___ctor(word);
void __dtrace_probe_cxx___dtor(word);
void __dtrace_probe_cxx___virtual(word);
void __dtrace_probe_cxx___lambda(word);
void __dtrace_probe_cxx___cold(word);
void __dtrace_probe_cxx___before(word);
void __dtrace_probe_cxx___caught(word);
int __dtrace_isenabled_cxx___inline(void);
int __dtrace_isenabled_cxx___template(void);
int __dtrace_isenabled_cxx___member(void);
int __dtrace_isenabled_cxx___caught(void);
}

#define NOINLINE __attribute__((noinline))

/* Adds a to a running sum and may throw it; comdat.cc defines it. */
word cxx_outside(word a);

/* A plain inline function, and a tail call in one. */
NOINLINE inline word cxx_inline(word a)
{
	__dtrace_probe_cxx___inline(a);
	return a * 3;
}

NOINLINE inline void cxx_inline_tail(word a)
{
	if (a > 2)
		__dtrace_probe_cxx___inline(a);
}

NOINLINE inline int cxx_inline_value()
{
	return __dtrace_isenabled_cxx___inline();
}

/* An inline function with a cold part. */
__attribute__((cold)) NOINLINE inline word cxx_inline_cold(word a)
{
	__dtrace_probe_cxx___cold(a);
	return a + 9;
}

NOINLINE inline word cxx_inline_part(word a)
{
	if (__builtin_expect(a > 1000, 0)) {
		__dtrace_probe_cxx___cold(a + 1);
		return cxx_inline_cold(a) + 1;
	}
	return a;
}

/* A template: functions that differ only in a constant. */
template <int N> NOINLINE word cxx_template(word a)
{
	__dtrace_probe_cxx___template(a + N);
	if (__dtrace_isenabled_cxx___template())
		__dtrace_probe_cxx___template(N);
	return a * N;
}

/* Members, a constructor and a destructor that unwinding runs. */
struct cxx_guard {
	word value;

	NOINLINE explicit cxx_guard(word a) : value(a)
	{
		__dtrace_probe_cxx___ctor(a);
	}

	NOINLINE ~cxx_guard()
	{
		__dtrace_probe_cxx___dtor(value);
	}

	NOINLINE word member(word a) const
	{
		if (__dtrace_isenabled_cxx___member())
			__dtrace_probe_cxx___member(this, a);
		return value + a;
	}
};

/* A lambda in an inline function. */
NOINLINE inline word cxx_inline_lambda(word a)
{
	auto f = [a](word b) __attribute__((noinline)) {
		__dtrace_probe_cxx___lambda(a + b);
		return a - b;
	};

	return f(1) + f(2);
}

/* A probe call around which an exception is thrown and caught. */
NOINLINE inline word cxx_inline_catch(word a)
{
	cxx_guard guard(a);

	try {
		__dtrace_probe_cxx___before(a);
		a = cxx_outside(a);
	} catch (int thrown) {
		__dtrace_probe_cxx___caught((word)thrown);
		if (__dtrace_isenabled_cxx___caught())
			return 0;
		return guard.member((word)thrown);
	}
	return guard.member(a);
}
