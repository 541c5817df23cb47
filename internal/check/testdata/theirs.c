/* A program of SystemTap's macros. Where its semaphore is, flags say. */
#if SEMAPHORES
#define _SDT_HAS_SEMAPHORES 1
#endif
#include <sys/sdt.h>

#ifdef CONSTANT
extern const unsigned short app_hit_semaphore __attribute__((section(SECTION), used, visibility("hidden"))) = 1;
#elif defined WHERE
WHERE unsigned short app_hit_semaphore __asm__("app_hit_semaphore") __attribute__((section(SECTION), used, visibility("hidden")));
#elif SEMAPHORES
extern unsigned short app_hit_semaphore __attribute__((visibility("hidden")));
#endif

#ifdef __cplusplus
extern "C"
#endif
int FUNCTION(int n);

int FUNCTION(int n)
{
#if SEMAPHORES
	if (app_hit_semaphore == 0)
		return 0;
#endif
	STAP_PROBE1(app, hit, n);
	return n;
}
