/*
 * Compiled twice, with -DUNIT=1 and -DUNIT=2, and merged with `ld -r`: two
 * source files of one name, each with local probe objects of the same names.
 * Only the order of the STT_FILE symbols tells whose is whose.
 */
struct sdt_probe {
	int version;
	char before[60];
	const char *name;
	char after[24];
};

#define PASTE(a, b) a##b
#define NAME(a, b) PASTE(a, b)

extern void __dtrace_probe_sdt___twice(int);
extern void __dtrace_probe_sdt___file(int);
extern int __dtrace_isenabled_sdt___file(void);

volatile int NAME(localtwice_sink, UNIT);

/* A local object with the probe's full name, at file level. */
static struct sdt_probe sdt_sdt___file[1] __attribute__((used)) = {
	{ .version = UNIT, .name = "file" }
};

void NAME(localtwice_a, UNIT)(int a)
{
	static struct sdt_probe sdt_sdt___twice[1] __attribute__((used)) = {
		{ .version = UNIT, .name = "twice" }
	};

	__dtrace_probe_sdt___twice(a);
	NAME(localtwice_sink, UNIT) = a;
}

int NAME(localtwice_b, UNIT)(int a)
{
	if (__dtrace_isenabled_sdt___file())
		__dtrace_probe_sdt___file(a);
	return a + UNIT;
}
