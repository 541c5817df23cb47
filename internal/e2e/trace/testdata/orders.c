#include <unistd.h>
#include <sdt.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		DTRACE_PROBE2(shop___placed, int, i, char *, argv[i]);
		usleep(10000);
	}
}
