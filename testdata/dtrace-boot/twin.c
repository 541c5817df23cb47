/* The twin's stubs, which print what probes.d has DTrace print. */
#include <stdio.h>

void __dtrace_probe_shop___order__placed(int n, char *name) { printf("place order-placed %d %s\n", n, name); }
void __dtrace_probe_shop___parcel(int n, long v, unsigned char c, char *s, short h, int i, long w)
{
	printf("pack parcel %d %ld %d %s %d %d %ld\n", n, v, c, s, h, i, w);
}
void __dtrace_probe_shop___weighed(int n, long weight) { printf("pack weighed %ld %d\n", weight, n); }
void __dtrace_probe_shop___tail(int n) { printf("leave tail %d\n", n); }
void __dtrace_probe_shop___done(void) { printf("main done\n"); }
