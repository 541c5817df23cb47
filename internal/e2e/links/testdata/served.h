#include <stdint.h>

struct record {
	void *probe;
	uintptr_t offset;
};

extern volatile long served;
void served_loop(void);
void served_idle(void);
void served_show(void);
void show(const char *what, const struct record *start, const struct record *stop);
