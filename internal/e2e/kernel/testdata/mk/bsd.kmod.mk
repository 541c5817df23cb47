# Stands in for FreeBSD's bsd.kmod.mk: what that does with sources and objects.
.SUFFIXES: .c .o

# As bsd.own.mk has it.
.if ${MK_CTF} != no
CTFCONVERT_CMD=	${CTFCONVERT} ${CTFFLAGS} ${.TARGET}
.else
CTFCONVERT_CMD=
.endif

CFLAGS+=	-O2 -g -nostdinc -ffreestanding -fno-common -D_KERNEL -DKLD_MODULE
.if ${MACHINE_CPUARCH} == amd64
CFLAGS+=	-mcmodel=kernel -mno-red-zone -fno-omit-frame-pointer
.else
CFLAGS+=	-fPIC -mgeneral-regs-only
.endif

OBJS=	${SRCS:R:S/$/.o/}
_LINKED=	${"${MACHINE_CPUARCH}" == "amd64":?${KMOD}.ko:${KMOD}.kld}

all: ${KMOD}.ko

.c.o:
	${CC} ${CFLAGS} -c ${.IMPSRC} -o ${.TARGET}
	${CTFCONVERT_CMD}

# All symbols become local, as no EXPORT_SYMS are given.
${_LINKED}: ${OBJS}
	${LD} ${LDFLAGS} -r -o ${.TARGET} ${OBJS}
	${NM} -g ${.TARGET} | awk '$$2 !~ /[AUvw]/ && NF == 3 { print "-L" $$3 }' | xargs sh -c '${OBJCOPY} "$$@" ${.TARGET}' -

.if ${MACHINE_CPUARCH} != amd64
${KMOD}.ko: ${KMOD}.kld
	${LD} -Bshareable ${LDFLAGS} -o ${.TARGET} ${KMOD}.kld
.endif
