/*
 * Function-local static probe objects, as FreeBSD's DTRACE_PROBEn makes them.
 * gcc names them sdt_<id>.N, clang <function>.sdt_<id>. One id in two
 * functions, one twice in one function (clang then adds .N too), one in a
 * function that is inlined into two others (its object belongs to neither).
 */
struct sdt_probe {
	int version;
	char before[60];
	const char *name;
	char after[24];
};

#define PROBE1(id, label, a)                                                   \
	do {                                                                   \
		extern void __dtrace_probe_##id(unsigned long);                \
		static struct sdt_probe sdt_##id[1]                            \
		    __attribute__((used)) = { { .version = sizeof(*sdt_##id),  \
			.name = label } };                                     \
		static const void *const set_##id __attribute__((used,         \
		    section("set_sdt_probes_set"))) = sdt_##id;                \
		__dtrace_probe_##id((unsigned long)(a));                       \
	} while (0)

volatile int locals_sink;

void locals_first(int a)
{
	PROBE1(sdt___shared, "shared", a);
	locals_sink = a;
	PROBE1(sdt___one, "one", a);
	locals_sink = a;
}

void locals_second(int a)
{
	locals_sink = a;
	PROBE1(sdt___shared, "shared", a + 1);
}

static inline __attribute__((always_inline)) void within(int a)
{
	PROBE1(sdt___inlined, "inlined", a);
	locals_sink = a;
}

void locals_third(int a)
{
	within(a);
	PROBE1(sdt___two, "two", a);
	PROBE1(sdt___two, "two", a + 1);
	locals_sink = a;
}

int locals_fourth(int a)
{
	extern int __dtrace_isenabled_sdt___shared(void);

	within(a + 1);
	return __dtrace_isenabled_sdt___shared();
}
