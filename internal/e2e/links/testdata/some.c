/*
 * One probe of the test program, with a module, for a link that has the others
 * from `sdtconvert stubs`.
 */
#include "../../../../include/sdt.h"

SDT_PROVIDER_DECLARE(program);
SDT_PROVIDER_DEFINE(program);

extern struct sdt_probe sdt_program___step;
struct sdt_probe sdt_program___step = {
	.version = sizeof(struct sdt_probe),
	.prov = sdt_provider_program,
	.mod = "some",
	.func = "",
	.name = "step",
};
