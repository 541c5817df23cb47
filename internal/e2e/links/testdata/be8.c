/*
 * A program without a C library: it prints a line for each probe that it reaches, what tests
 * return, and with RECORDS its records, the address and what they name.
 */
void __dtrace_probe_a(int);
int __dtrace_isenabled_b(void);

static long call(long number, long a, long b, long c)
{
	register long r7 __asm__("r7") = number;
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	__asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
	return r0;
}

static void put(const char *s)
{
	int n = 0;
	while (s[n])
		n++;
	call(4, 1, (long)s, n); /* write */
}

static void hex(unsigned long v, const char *end)
{
	char text[9];
	int i;
	for (i = 0; i < 8; i++)
		text[i] = "0123456789abcdef"[v >> (28 - 4 * i) & 15];
	text[8] = 0;
	put(text);
	put(end);
}

__attribute__((noinline)) int step(int x)
{
	if (x > 1) {
		put("step\n");
		__dtrace_probe_a(x);
	}
	return x;
}

__attribute__((noinline)) int test(int x)
{
	put(__dtrace_isenabled_b() ? "on\n" : "off\n");
	return x;
}

__attribute__((noinline)) int tail_test(int x) { return x ? __dtrace_isenabled_b() : 7; }
__attribute__((noinline)) void tail_probe(int x) { __dtrace_probe_a(x); }

#ifdef RECORDS
struct record { void *probe; unsigned long site; };
int sdt_a, sdt_b;
extern struct record __start_sdt_instances_set[], __stop_sdt_instances_set[];
extern struct record __start_sdt_isenabled_set[], __stop_sdt_isenabled_set[];
#endif

void _start(void)
{
	step(1);
	step(2);
	test(3);
	hex(tail_test(1), "\n");
	hex(tail_test(0), "\n");
	tail_probe(1);
#ifdef RECORDS
	struct record *r;
	for (r = __start_sdt_instances_set; r < __stop_sdt_instances_set; r++)
		hex(r->site, r->probe == &sdt_a ? " a\n" : " ?\n");
	for (r = __start_sdt_isenabled_set; r < __stop_sdt_isenabled_set; r++)
		hex(r->site, r->probe == &sdt_b ? " b\n" : " ?\n");
#endif
	call(1, 0, 0, 0); /* exit */
}
