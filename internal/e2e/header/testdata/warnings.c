/* Macros of all headers, in C and C++, with arguments of many types. */
#include <sdt.h>
#include <usdt.h>

#include "warnings.h" /* of warnings.d */

SDT_PROVIDER_DEFINE(warn);
SDT_PROBE_DEFINE0(warn, , , none);
SDT_PROBE_DEFINE2(warn, , , two, "char", "const char *");
#ifdef __cplusplus
DTRACE_PROBE_DECLARE(warn___three);
DTRACE_PROBE_DECLARE(warn___four);
#endif

enum color { RED };

struct values {
	int i;
	char c;
	unsigned short s;
	long long l;
	double d;
	const char *text;
	enum color color;
};

void fire(const struct values *v);

void fire(const struct values *v)
{
	SDT_PROBE0(warn, , , none);
	if (SDT_PROBE_ENABLED(warn, , , two))
		SDT_PROBE2(warn, , , two, v->c, v->text);
	SDT_PROBE2(warn, , , two, v->i == 3, "text");
	if (DTRACE_PROBE_ENABLED(warn___three))
		DTRACE_PROBE3(warn___three, enum color, v->color, unsigned short, v->s, long long, v->l);
	DTRACE_PROBE(warn___four);

	USDT(warn, five);
	USDT(warn, six, v->c, v->text, v);
	USDT_WITH_SEMA(warn, seven, v->s, 7u);
	if (USDT_IS_ACTIVE(warn, seven))
		USDT(warn, eight, v->l, v->color, 8);

	WARNINGS_NONE();
	if (WARNINGS_SOME_ENABLED())
		WARNINGS_SOME(v->c, v->text, v->d);
	WARNINGS_SOME(v->text, v->s, v->l);
}
