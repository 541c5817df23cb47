#include "textflag.h"

// func ReadClock() uint64
TEXT ·ReadClock(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET
