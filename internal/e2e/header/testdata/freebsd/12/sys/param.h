/* As much of FreeBSD's as the tests need. */
#ifndef _SYS_PARAM_H_
#define	_SYS_PARAM_H_
typedef __UINTPTR_TYPE__ __uintptr_t;
#define	__predict_false(e)	__builtin_expect((e), 0)
#endif
