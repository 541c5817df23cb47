#include <sys/types.h>
#ifdef __APPLE__
#define string char *
#define pid_t uint32_t
#define zoneid_t uint32_t
#else
#include <sys/types.h>
#endif
provider Agent {
        # file: one line of remarks, whose apostrophe isn't closed
        probe request__start(string, uint8_t, uint16_t, int, void *);
        probe client__auth(int, string, pid_t, zoneid_t);
        probe monitorNotify(uintptr_t, char*, uintptr_t);
        probe translated(conn_t *c, int s) : (conninfo_t *c, int s);
        probe nothing(void);
        probe callbacks(int (*f)(int, char *), char *argv[4], const volatile struct s *const p);
};
