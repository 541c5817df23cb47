/*
 * A reader as docs/reading.md describes it: walks the linker sets and the
 * records of its own module, and prints
 *
 *	provider <name>
 *	probe <provider>:<module>:<function>:<name>(<types>)
 *	probed <the same name>		for each tracepoint
 *	tested <the same name>		for each is-enabled test
 *
 * -DRELATIVE: records of the layout relative.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <sdt.h>

#define BOUND __attribute__((weak, visibility("hidden")))

extern struct sdt_provider *__start_set_sdt_providers_set[] BOUND, *__stop_set_sdt_providers_set[] BOUND;
extern struct sdt_probe *__start_set_sdt_probes_set[] BOUND, *__stop_set_sdt_probes_set[] BOUND;
extern struct sdt_argtype *__start_set_sdt_argtypes_set[] BOUND, *__stop_set_sdt_argtypes_set[] BOUND;

#ifdef RELATIVE
struct record {
	int32_t probe;
	int32_t site;
};
extern const struct record __start_sdt_instances_rel[] BOUND, __stop_sdt_instances_rel[] BOUND;
extern const struct record __start_sdt_isenabled_rel[] BOUND, __stop_sdt_isenabled_rel[] BOUND;
#define INSTANCES(edge) __##edge##_sdt_instances_rel
#define TESTS(edge) __##edge##_sdt_isenabled_rel
#define PROBE(r) ((const struct sdt_probe *)((uintptr_t)&(r)->probe + (uintptr_t)(intptr_t)(r)->probe))
#else
struct record {
	const struct sdt_probe *probe;
	uintptr_t site;
};
extern const struct record __start_sdt_instances_set[] BOUND, __stop_sdt_instances_set[] BOUND;
extern const struct record __start_sdt_isenabled_set[] BOUND, __stop_sdt_isenabled_set[] BOUND;
#define INSTANCES(edge) __##edge##_sdt_instances_set
#define TESTS(edge) __##edge##_sdt_isenabled_set
#define PROBE(r) ((r)->probe)
#endif

static void dashed(const char *s)
{
	for (; *s != '\0'; s++) {
		putchar(s[0] == '_' && s[1] == '_' ? '-' : s[0]);
		s += s[0] == '_' && s[1] == '_';
	}
}

static void show(const char *what, const struct sdt_probe *p)
{
	if (p->version != (int)sizeof(*p) || p->id != 0 || p->n_args != 0)
		abort();
	printf("%s ", what);
	dashed(p->prov->name);
	printf(":%s:%s:", p->mod, p->func);
	dashed(p->name);
}

static void show_types(const struct sdt_probe *p)
{
	const char *comma = "";

	putchar('(');
	for (int i = 0; i < 12; i++) {
		for (struct sdt_argtype **a = __start_set_sdt_argtypes_set; a < __stop_set_sdt_argtypes_set; a++) {
			if ((*a)->probe != p || (*a)->ndx != i)
				continue;
			printf("%s%s", comma, (*a)->type);
			if ((*a)->xtype != NULL)
				printf(" -> %s", (*a)->xtype);
			comma = ", ";
		}
	}
	puts(")");
}

void headertest_show(void);

void headertest_show(void)
{
	for (struct sdt_provider **p = __start_set_sdt_providers_set; p < __stop_set_sdt_providers_set; p++) {
		printf("provider ");
		dashed((*p)->name);
		puts("");
	}
	for (struct sdt_probe **p = __start_set_sdt_probes_set; p < __stop_set_sdt_probes_set; p++) {
		show("probe", *p);
		show_types(*p);
	}
	for (const struct record *r = INSTANCES(start); r < INSTANCES(stop); r++) {
		show("probed", PROBE(r));
		puts("");
	}
	for (const struct record *r = TESTS(start); r < TESTS(stop); r++) {
		show("tested", PROBE(r));
		puts("");
	}
}
