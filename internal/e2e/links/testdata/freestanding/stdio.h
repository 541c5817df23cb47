/* As much of a C library as freestanding.c has. */
#define NULL ((void *)0)
typedef struct file FILE;
extern FILE *const stdout, *const stderr;
int printf(const char *, ...);
int fprintf(FILE *, const char *, ...);
