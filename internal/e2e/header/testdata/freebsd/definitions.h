/*
 * As much of FreeBSD's sys/sdt.h as the tests need, without what fires a probe. Who
 * includes it says what its generation adds.
 */
#ifndef KDTRACE_HOOKS
#define	SDT_PROVIDER_DEFINE(prov)
#define	SDT_PROBE_DEFINE(prov, mod, func, name)
#define	SDT_PROBE_DEFINE0(prov, mod, func, name)
#define	SDT_PROBE_DEFINE1(prov, mod, func, name, t0)
#define	SDT_PROBE_DEFINE2(prov, mod, func, name, t0, t1)
#define	SDT_PROBE(prov, mod, func, name, a0, a1, a2, a3, a4)
#define	SDT_PROBE0(prov, mod, func, name)
#define	SDT_PROBE1(prov, mod, func, name, a0)	do {} while (0)
#define	SDT_PROBE2(prov, mod, func, name, a0, a1)
#define	SDT_PROBE3(prov, mod, func, name, a0, a1, a2)
#define	SDT_PROBE7(prov, mod, func, name, a0, a1, a2, a3, a4, a5, a6)
#define	DTRACE_PROBE1(name, t0, a0)
#else
struct sdt_provider {
	const char *name;
};
struct sdt_probe {
	int version;
	struct sdt_provider *prov;
	void *probe_entry[2], *argtype_list[2] TRACEPOINT_LIST;
	const char *mod, *func, *name;
	unsigned long id;
	int n_args;
	void *sdtp_lf;
};
extern void (*sdt_probe_func)(unsigned long, __uintptr_t, __uintptr_t, __uintptr_t,
    __uintptr_t, __uintptr_t SIXTH_ARGUMENT);

#define	SDT_PROVIDER_DEFINE(prov)					\
	struct sdt_provider sdt_provider_##prov[1] = { { #prov } };	\
	static struct sdt_provider *set_##prov				\
	    __attribute__((__used__, __section__("set_sdt_providers_set"))) = \
	    sdt_provider_##prov
#define	SDT_PROBE_DEFINE(prov, mod, func, name)				\
	struct sdt_probe sdt_##prov##_##mod##_##func##_##name[1] = { {	\
	    sizeof(struct sdt_probe), sdt_provider_##prov, { 0, 0 },	\
	    { 0, 0 } NO_TRACEPOINTS, #mod, #func, #name, 0, 0, 0 } };						\
	static struct sdt_probe *set_##prov##_##mod##_##func##_##name	\
	    __attribute__((__used__, __section__("set_sdt_probes_set"))) = \
	    sdt_##prov##_##mod##_##func##_##name
#define	SDT_PROBE_DEFINE0(prov, mod, func, name)			\
	SDT_PROBE_DEFINE(prov, mod, func, name)
#define	SDT_PROBE_DEFINE1(prov, mod, func, name, t0)			\
	SDT_PROBE_DEFINE(prov, mod, func, name)
#define	SDT_PROBE_DEFINE2(prov, mod, func, name, t0, t1)		\
	SDT_PROBE_DEFINE(prov, mod, func, name)

#define	SDT_PROBE0(prov, mod, func, name)				\
	SDT_PROBE(prov, mod, func, name, 0, 0, 0, 0, 0)
#define	SDT_PROBE1(prov, mod, func, name, a0)				\
	SDT_PROBE(prov, mod, func, name, (a0), 0, 0, 0, 0)
#define	SDT_PROBE2(prov, mod, func, name, a0, a1)			\
	SDT_PROBE(prov, mod, func, name, a0, a1, 0, 0, 0)
#define	SDT_PROBE3(prov, mod, func, name, a0, a1, a2)			\
	SDT_PROBE(prov, mod, func, name, a0, a1, a2, 0, 0)
#define	SDT_PROBE7(prov, mod, func, name, a0, a1, a2, a3, a4, a5, a6)	\
	SDT_PROBE(prov, mod, func, name, a0, a1, a2, a3, a4)
#define	DTRACE_PROBE1(name, t0, a0)	do {				\
	static SDT_PROBE_DEFINE(sdt, , , name);				\
	SDT_PROBE(sdt, , , name, a0, 0, 0, 0, 0);			\
} while (0)

extern struct sdt_provider sdt_provider_sdt[1];
#endif /* KDTRACE_HOOKS */
