/* Loads a library, calls it for a while, unloads it, and again: loads LIBRARY. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
#include <sdt.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		void (*plugin)(int) = library ? (void (*)(int))dlsym(library, "plugin") : NULL;
		if (!plugin)
			return 1;
		for (int k = 0; k < 100; k++) {
			plugin(i);
			usleep(5000);
		}
		dlclose(library);
		DTRACE_PROBE1(loads___unloaded, int, i);
	}
	return 0;
}
