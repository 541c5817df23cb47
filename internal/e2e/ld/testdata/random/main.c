// A program without a C library. It prints which of several definitions was linked, and
// the numbers of all objects in it, in their order.

extern const int __start_ids[] __attribute__((weak, visibility("hidden")));
extern const int __stop_ids[] __attribute__((weak, visibility("hidden")));
extern int stubs_called __attribute__((weak));

#ifdef STRONG
int which(void);
#else
int which(void) __attribute__((weak));
#endif
#ifdef PULL
int pull0(void), pull1(void);
int only3(void) __attribute__((weak));
#else
int only3(void) __attribute__((weak)), pull0(void) __attribute__((weak)), pull1(void) __attribute__((weak));
#endif
int extra(void) __attribute__((weak)), alias(void) __attribute__((weak));
int dynamic(void) __attribute__((weak));

static long system_call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static char text[4096];
static int length;

static void put(const char *s)
{
	while (*s != '\0' && length < (int)sizeof text - 16)
		text[length++] = *s++;
}

static void number(int n)
{
	char digits[16];
	int i = 15;

	digits[i] = '\0';
	do
		digits[--i] = '0' + n % 10;
	while ((n /= 10) > 0);
	put(&digits[i]);
}

static void show(const char *name, int (*function)(void))
{
	if (function == 0)
		return;
	put(name);
	number(function());
}

__attribute__((used)) void begin(void)
{
	show("which=", which);
	show(" extra=", extra);
	show(" pull0=", pull0);
	show(" pull1=", pull1);
	show(" only3=", only3);
	show(" alias=", alias);
	show(" dynamic=", dynamic);
	put(" ids=");
	for (const int *id = __start_ids; id < __stop_ids; id++) {
		number(*id);
		put(",");
	}
	put("\nstubs called: ");
	number(&stubs_called != 0 ? stubs_called : 0);
	put("\n");
	system_call(1, 1, (long)text, length);
	system_call(231, 0, 0, 0);
}

__asm__(".globl _start\n_start: xor %ebp, %ebp; and $-16, %rsp; call begin; hlt\n");
