#include "show.h"

void __dtrace_probe_app___start(int);
void second(int);

int main(int argc, char **argv)
{
	(void)argv;
	__dtrace_probe_app___start(argc);
	second(argc);
	show("main");
	return 0;
}
