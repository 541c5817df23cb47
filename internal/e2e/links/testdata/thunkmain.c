/*
 * Runs thunk.c: -DSTUBS makes the stubs of the unconverted twin, else the main,
 * the return thunk and the probe objects.
 */
#ifdef STUBS
#define STUB __attribute__((visibility("hidden")))
STUB void __dtrace_probe_thunk___tail(int a) { (void)a; }
STUB void __dtrace_probe_thunk___cond(int a) { (void)a; }
STUB int __dtrace_isenabled_thunk___value(void) { return 0; }
#else
char sdt_thunk___tail[96] = { 96 };
char sdt_thunk___cond[96] = { 96 };
char sdt_thunk___value[96] = { 96 };
extern const char __start_sdt_instances_set[] __attribute__((weak));
extern const char __start_sdt_isenabled_set[] __attribute__((weak));
const char *thunk_records[] = { __start_sdt_instances_set, __start_sdt_isenabled_set };

#ifdef __s390x__
#define THUNK "__s390_indirect_jump_r14"
#define RETURN "br %r14"
#else
#define THUNK "__x86_return_thunk"
#define RETURN "ret"
#endif
__asm__(".text\n.globl " THUNK "\n.hidden " THUNK "\n"
	".type " THUNK ", @function\n"
	THUNK ": " RETURN "\n.size " THUNK ", .-" THUNK "\n");

extern volatile int thunk_sink;
void thunk_tail(int a);
int thunk_value(void);
int thunk_value_too(int a);
int thunk_call(int a);
void thunk_cond(int a);
int thunk_cond_value(int a);

int main(void)
{
	thunk_tail(3);
	if (thunk_sink != 3 || thunk_value() != 0 || thunk_value_too(5) != 0 || thunk_sink != 5)
		return 1;
#ifndef TAILS_ONLY
	thunk_cond(0);
	thunk_cond(1);
	if (thunk_call(3) != 4 || thunk_cond_value(0) != 6 || thunk_cond_value(1) != 0)
		return 2;
#endif
	return 0;
}
#endif
