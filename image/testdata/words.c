/* Fields of all kinds, in sections as records stand in, and a function that
   prints what they hold once they are loaded: "<field> <value>" a line, and the
   run-time address of the ELF header. */
#include <stdio.h>

#define IN(name) __attribute__((section(name), used))

struct probe { long version; const char *name; };
struct probe sdt_own = { 96, "own name" };
static struct probe sdt_local = { 97, "local" };
extern struct probe sdt_elsewhere;
extern struct probe sdt_nowhere __attribute__((weak));
__attribute__((noinline)) void a_function(void) { asm("nop"); }
__attribute__((noinline)) static void a_static_function(void) { asm(""); }

void *words[] IN("sdt_instances_set") = {
	&sdt_own, &sdt_local, a_static_function, &sdt_own.name, (void *)0x1234,
	0, (char *)&sdt_local + 1000, &sdt_nowhere,
};
#ifdef ELSEWHERE
/* Only where the loader may write, and where it knows that symbol. */
void *outer[] IN("outer_set") = { &sdt_elsewhere, &sdt_elsewhere.name, &sdt_own, a_function };
#endif

/* Distances, of which a compiler knows no initialiser. */
asm(".pushsection sdt_instances_rel,\"a\"\n"
    "distances: .4byte inside-.\n.4byte inside+4-.\n.popsection\n"
    ".pushsection .data\n.balign 8\ninside: .quad 1, 2\n.popsection");

extern void *__start_sdt_instances_set[], *__stop_sdt_instances_set[];
extern int __start_sdt_instances_rel[], __stop_sdt_instances_rel[];
extern char __ehdr_start[];
#pragma GCC visibility push(hidden)
extern char inside[];
#pragma GCC visibility pop

void print_words(void)
{
	void **p;
	int *d;
	printf("header %#lx\n", (unsigned long)__ehdr_start);
	for (p = __start_sdt_instances_set; p < __stop_sdt_instances_set; p++)
		printf("sdt_instances_set %#lx\n", (unsigned long)*p);
#ifdef ELSEWHERE
	for (p = outer; p < outer + 4; p++)
		printf("outer_set %#lx\n", (unsigned long)*p);
#endif
	for (d = __start_sdt_instances_rel; d < __stop_sdt_instances_rel; d++)
		printf("sdt_instances_rel %#lx\n", (unsigned long)((char *)d + *d));
	fflush(stdout);
}
