/*
 * The probe object's name is in the symbol table already: referenced by this
 * file's own code and data beside the calls, or, with -DDEFINE, defined here
 * (-DDEFINE=static makes it a local one of the same name).
 */
struct sdt_probe {
	char pad[96];
};

#ifdef DEFINE
DEFINE struct sdt_probe sdt_existing___probe[1] = { { "defined" } };
#else
extern struct sdt_probe sdt_existing___probe[1];
#endif
extern struct sdt_probe sdt_existing___weak[1] __attribute__((weak));

extern void __dtrace_probe_existing___probe(int);
extern void __dtrace_probe_existing___weak(int);
extern void __dtrace_probe_existing___new(int);
extern int __dtrace_isenabled_existing___probe(void);

struct sdt_probe *existing_pointer = sdt_existing___probe;

struct sdt_probe *existing_user(int a)
{
	__dtrace_probe_existing___probe(a);
	__dtrace_probe_existing___new(a);
	if (sdt_existing___weak)
		__dtrace_probe_existing___weak(a);
	if (__dtrace_isenabled_existing___probe())
		return 0;
	return sdt_existing___probe;
}
