/* Loads the libraries that are its arguments, each in a namespace of its own, so
   that one may be loaded twice; prints their words, and its own if it has some;
   maps the first as data too, and waits until its input ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#ifdef WORDS
void print_words(void);
#endif

int main(int argc, char **argv)
{
	int i;
#ifdef WORDS
	print_words();
#endif
	for (i = 1; i < argc; i++) {
		void *lib = dlmopen(LM_ID_NEWLM, argv[i], RTLD_NOW);
		void (*print)(void) = lib ? dlsym(lib, "print_words") : 0;
		if (!print) {
			printf("%s\n", dlerror());
			return 1;
		}
		print();
	}
	if (argc > 1)
		printf("data %p\n", mmap(0, 100, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0));
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
