/* A guard of sdt.h, as the compiler leaves it. */
__asm__(".pushsection .probes, \"aw?\", %progbits\n"
	".weak __dtrace_semaphore_app___hit\n"
	".hidden __dtrace_semaphore_app___hit\n"
	".type __dtrace_semaphore_app___hit, %object\n"
	".size __dtrace_semaphore_app___hit, 2\n"
	".balign 4\n"
	"__dtrace_semaphore_app___hit: .zero 4\n"
	".popsection");

extern unsigned short guard __asm__("__dtrace_semaphore_app___hit") __attribute__((visibility("hidden")));

#ifdef __cplusplus
extern "C"
#endif
int guarded(void);

int guarded(void) { return guard; }
