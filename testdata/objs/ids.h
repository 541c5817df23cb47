/*
 * Every probe id that calls.c, inline.h, comdat.cc, program.c and program2.cc
 * use, for probes.c (which defines the probe objects) and stubs.c (which
 * defines the functions that an unconverted program is linked with).
 *
 * CALLED(X)  ids with at least one __dtrace_probe_<id>, X(id, provider, name, args)
 * TESTED(X)  ids with at least one __dtrace_isenabled_<id>, X(id)
 *
 * Every tested id has a probe object too: one that is only tested stands in
 * ONLY_TESTED, in the form of CALLED.
 */
#define CALLED(X)                                                              \
	X(plain, "sdt", "plain", 1)                                            \
	X(calls___zero, "calls", "zero", 0)                                    \
	X(calls___one, "calls", "one", 1)                                      \
	X(calls___two, "calls", "two", 2)                                      \
	X(calls___three, "calls", "three", 3)                                  \
	X(calls___four, "calls", "four", 4)                                    \
	X(calls___five, "calls", "five", 5)                                    \
	X(calls___six, "calls", "six", 6)                                      \
	X(calls___again, "calls", "again", 1)                                  \
	X(calls___entry__point, "calls", "entry-point", 1)                     \
	X(calls___static, "calls", "static", 1)                                \
	X(calls___loop, "calls", "loop", 1)                                    \
	X(calls___cold, "calls", "cold", 1)                                    \
	X(calls___fail, "calls", "fail", 1)                                    \
	X(calls___tail, "calls", "tail", 1)                                    \
	X(calls___cond, "calls", "cond", 1)                                    \
	X(calls___either, "calls", "either", 1)                                \
	X(calls___guard, "calls", "guard", 2)                                  \
	X(calls___init, "calls", "init", 0)                                    \
	X(cxx___inline, "cxx", "inline", 1)                                    \
	X(cxx___template, "cxx", "template", 1)                                \
	X(cxx___member, "cxx", "member", 2)                                    \
	X(cxx___ctor, "cxx", "ctor", 1)                                        \
	X(cxx___dtor, "cxx", "dtor", 1)                                        \
	X(cxx___virtual, "cxx", "virtual", 1)                                  \
	X(cxx___lambda, "cxx", "lambda", 1)                                    \
	X(cxx___cold, "cxx", "cold", 1)                                        \
	X(cxx___before, "cxx", "before", 1)                                    \
	X(cxx___caught, "cxx", "caught", 1)                                    \
	X(program___start, "program", "start", 1)                              \
	X(program___step, "program", "step", 2)                                \
	X(program___tail, "program", "tail", 1)                                \
	X(program___throw, "program", "throw", 1)                              \
	X(program___done, "program", "done", 1)

#define ONLY_TESTED(X)                                                         \
	X(calls___value, "calls", "value", 0)                                  \
	X(calls___ctail, "calls", "ctail", 0)                                  \
	X(calls___stored, "calls", "stored", 0)                                \
	X(program___value, "program", "value", 0)

#define TESTED(X)                                                              \
	X(calls___value)                                                       \
	X(calls___ctail)                                                       \
	X(calls___stored)                                                      \
	X(calls___guard)                                                       \
	X(calls___loop)                                                        \
	X(calls___cold)                                                        \
	X(calls___init)                                                        \
	X(cxx___inline)                                                        \
	X(cxx___template)                                                      \
	X(cxx___member)                                                        \
	X(cxx___caught)                                                        \
	X(program___value)                                                     \
	X(program___step)
