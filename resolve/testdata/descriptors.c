/* Functions for machines whose symbols stand for descriptors. */
volatile int sink;
static __attribute__((noinline)) int local(int x) { return sink += x; }
__attribute__((noinline)) int exported(int x) { return sink -= local(x); }
int entry(void) { return exported(1) + local(2); }
