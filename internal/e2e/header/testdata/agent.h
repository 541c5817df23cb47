/* What the arguments of agent.c's probes are, of a number. */
#define LONG(n) ((n) * -1000000007L)
#define BYTE(n) ((unsigned char)((n) * 7))
#define SHORT(n) ((short)((n) * 300))
