# Has bsd.kmod.mk convert each object when it is made. Include this file behind it:
#
#	.include <bsd.kmod.mk>
#	.include "sdtconvert.mk"
#
# or convert them when they are linked, if this is before that:
#
#	LD=		sdtconvert ld --in-place --layout freebsd --linker ld.lld --
#	SDTCONVERT=
#
# CTFCONVERT_CMD is what the rules for sources run after the compiler. An object that
# cannot be converted must go, or the next make would link it.
SDTCONVERT?=	sdtconvert --layout freebsd
_SDTCONVERT=	${SDTCONVERT} ${.TARGET} || { rm -f ${.TARGET}; false; }
.if empty(SDTCONVERT)
.elif empty(CTFCONVERT_CMD) || ${CTFCONVERT_CMD} == "@:"
CTFCONVERT_CMD=	${_SDTCONVERT}
.else
CTFCONVERT_CMD+= && { ${_SDTCONVERT}; }
.endif

# In a module that `ld -r' has made, as amd64's are, the kernel finds a set by the
# name of its section. Those of other machines are shared objects. There it looks
# for the bounds of the section, which the linker makes only if something names them.
.if ${MACHINE_CPUARCH} != amd64
.for _set in instances isenabled
LDFLAGS+=	-u __start_set_sdt_${_set}_set -u __stop_set_sdt_${_set}_set
.endfor
.endif
