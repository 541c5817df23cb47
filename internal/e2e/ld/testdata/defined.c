/* The probe object of main.c's probe, as a source defines it, and that it is used. */
#include <stdio.h>

struct { char *name; void *rest[4]; } sdt_provider_app = { "own", { 0 } };
struct { int version; void *prov; void *rest[4]; char *mod, *func, *name; void *more[3]; } sdt_app___start = {
	0, &sdt_provider_app, { 0 }, "", "", "defined", { 0 },
};

__attribute__((constructor)) static void used(void) { puts("used"); }
