/* The rest of a program of notloaded.amd64.S. */
extern void f(void);
int g_calls;

void g(void) { g_calls++; }

#ifdef STUB
void __dtrace_probe_notloaded___call(void) {}
#else
char sdt_notloaded___call[256];
#endif

int main(void)
{
	f();
	return g_calls != 1;
}
