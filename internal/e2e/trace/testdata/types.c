// Probes whose arguments have types that only debug information or a provider file explains.
#include <sdt.h>

enum color { RED, GREEN = 5, BLUE = -2 };
typedef enum { OPEN, CLOSED } door_t;
typedef char *label;

extern void __dtrace_probe_plain___stub(int n, const char *what, enum color c, door_t d, _Bool b, void *p, short s);

int main(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		enum color c = i == 0 ? RED : i == 1 ? GREEN : BLUE;
		door_t door = i & 1;
		label text = argv[i];
		DTRACE_PROBE3(shop___typed, enum color, c, door_t, door, label, text);
		__dtrace_probe_plain___stub(i - 5, text, c, door, i & 1, 0, -i);
	}
}
