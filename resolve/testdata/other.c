/* Its helper() is not that of program.c. */
extern volatile int sink;
static __attribute__((noinline, noclone)) int helper(int x) { return sink *= x; }
int other(int x) { return helper(x) + 1; }
