/*
 * What programs made at random call. -DSTUBS makes the stubs of the unconverted twin, else the
 * probe objects. Stubs change what a call may change.
 */
int options_hits;
int options_counts[5]; /* of the probes one, two, none and nine, and of tests */
#ifdef STUBS
void __dtrace_probe_registers___one(unsigned long a) { options_counts[0]++; options_hits += a != 0; }
void __dtrace_probe_registers___two(unsigned long a, unsigned long b) { options_counts[1]++; options_hits += a != b; }
void __dtrace_probe_registers___none(void) { options_counts[2]++; options_hits++; }
void __dtrace_probe_registers___nine(long a, int b, long c, int d, long e, int f, long g, int h, long i)
{
	options_counts[3]++;
	options_hits += a + b + c + d + e + f + g + h + i != 0;
}
int __dtrace_isenabled_registers___one(void) { options_counts[4]++; options_hits++; return 0; }
#else
char sdt_registers___one[96] = { 96 };
char sdt_registers___two[96] = { 96 };
char sdt_registers___none[96] = { 96 };
char sdt_registers___nine[96] = { 96 };
#endif
int registers_work(int a) { return a ^ 5; }
