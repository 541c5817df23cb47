/* One of many objects, without probes. UNIT begins each global name. */
#define JOINED(a, b) a##_##b
#define JOIN(a, b) JOINED(a, b)
#define NAME(name) JOIN(UNIT, name)

long NAME(table)[4] = { 1, 2, 3, 4 };
long NAME(run)(long n);

static __attribute__((noinline)) long step(long n)
{
	return NAME(table)[n & 3];
}

long NAME(run)(long n)
{
	return step(n) + step(n + 1);
}
