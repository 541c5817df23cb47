/*
 * What program.c, program2.cc and show.c take of others, for machines that there is no C
 * library for: a beginning that relocates a position-independent executable, calls
 * constructors, writes and ends, and the output functions as far as they are used.
 */
#include "freestanding/stdio.h"
#include "freestanding/stdlib.h"

typedef unsigned long word;

#define HIDDEN __attribute__((visibility("hidden")))

struct dynamic {
	long tag;
	word value;
};

struct rela {
	word offset, info;
	word addend;
};

struct header {
	char unused[32];
	word phoff;
	char more[16];
	unsigned short phnum;
};

struct segment {
	unsigned type, flags;
	word offset, vaddr, paddr, filesz, memsz, align;
};

extern char __ehdr_start[] HIDDEN;
extern void (*__init_array_start[])(void) __attribute__((weak)) HIDDEN;
extern void (*__init_array_end[])(void) __attribute__((weak)) HIDDEN;
extern int main(int, char **);

#if defined __loongarch__
#define RELATIVE 3
static long call(long number, long a, const void *b, long c)
{
	register long a0 __asm__("$a0") = a;
	register const void *a1 __asm__("$a1") = b;
	register long a2 __asm__("$a2") = c, a7 __asm__("$a7") = number;

	__asm__ volatile("syscall 0" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7)
	    : "$t0", "$t1", "$t2", "$t3", "$t4", "$t5", "$t6", "$t7", "$t8", "memory");
	return a0;
}
#endif

FILE *const stdout = (FILE *)1, *const stderr = (FILE *)2;

static void put(FILE *f, const char *s, long n)
{
	if (call(64, (long)f, s, n) != n)
		call(93, 1, 0, 0);
}

static void number(FILE *f, word v, unsigned base)
{
	char digits[24], *d = digits + sizeof digits;

	do
		*--d = "0123456789abcdef"[v % base];
	while ((v /= base) != 0);
	put(f, d, digits + sizeof digits - d);
}

/* Knows %s, %d of what is not negative, %lu and %#lx. */
static void print(FILE *f, const char *format, __builtin_va_list args)
{
	const char *s, *p;

	for (p = format; *p != '\0'; p++) {
		if (*p != '%') {
			put(f, p, 1);
			continue;
		}
		switch (*++p) {
		case 's':
			for (s = __builtin_va_arg(args, const char *); *s != '\0'; s++)
				put(f, s, 1);
			break;
		case 'd':
			number(f, (word)__builtin_va_arg(args, int), 10);
			break;
		case 'l':
			number(f, __builtin_va_arg(args, word), 10);
			p++;
			break;
		case '#':
			put(f, "0x", 2);
			number(f, __builtin_va_arg(args, word), 16);
			p += 2;
			break;
		default:
			call(93, 2, 0, 0);
		}
	}
}

int printf(const char *format, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, format);
	print(stdout, format, args);
	__builtin_va_end(args);
	return 0;
}

int fprintf(FILE *f, const char *format, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, format);
	print(f, format, args);
	__builtin_va_end(args);
	return 0;
}

char *getenv(const char *name)
{
	return (char *)name;
}

/* In C++, and not here. */
word comdat_all(void)
{
	return 2;
}

word program2_all(void)
{
	return 3;
}

/* Has no weak symbols, whose addresses are relocated themselves. */
static void relocate(void)
{
	const struct header *h = (const struct header *)__ehdr_start;
	const struct segment *p = (const struct segment *)(__ehdr_start + h->phoff);
	const struct dynamic *d = 0;
	const struct rela *r = 0;
	word size = 0, i;

	for (i = 0; i < h->phnum; i++)
		if (p[i].type == 2) /* PT_DYNAMIC */
			d = (const struct dynamic *)(__ehdr_start + p[i].vaddr);
	for (; d != 0 && d->tag != 0; d++)
		if (d->tag == 7) /* DT_RELA */
			r = (const struct rela *)(__ehdr_start + d->value);
		else if (d->tag == 8) /* DT_RELASZ */
			size = d->value;
	for (i = 0; r != 0 && i < size / sizeof *r; i++) {
		if (r[i].info != RELATIVE)
			call(93, 3, 0, 0);
		*(word *)(__ehdr_start + r[i].offset) = (word)__ehdr_start + r[i].addend;
	}
}

void _start(void)
{
	word i;

	relocate();
	__asm__ volatile("" : : : "memory");
	for (i = 0; &__init_array_start[i] < __init_array_end; i++)
		__init_array_start[i]();
	call(93, main(0, 0), 0, 0);
}
