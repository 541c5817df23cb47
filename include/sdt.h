/*-
 * Copyright (c) 2026 The sdtconvert authors
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Statically defined probes for any program: the macros of FreeBSD's SDT(9) and
 * illumos' DTRACE_PROBE, for gnu89, C99, C++11 and later, with gcc or clang, on ELF.
 * Elsewhere it compiles to nothing.
 *
 *	SDT_PROVIDER_DEFINE(icmp);
 *	SDT_PROBE_DEFINE1(icmp, , unreach, pkt__receive, "struct icmp *");
 *	...
 *		SDT_PROBE1(icmp, , unreach, pkt__receive, header);
 *
 * A tracepoint is a direct call of an undefined function,
 *
 *	__dtrace_probe_icmp__unreach_pkt__receive(header);
 *
 * which sdtconvert turns into a NOP before the program is linked. In programs
 * it is that NOP from the start: assembly that names the same function, and says
 * where the compiler has the arguments. SDT_CALLS asks for calls.
 *
 * docs/probes.md is the manual of this file, docs/reading.md that of code that
 * reads the structures.
 *
 * Parts of names are pasted and quoted where they come in: an argument that one
 * macro hands on to the next is expanded on the way, and `linux' or `errno'
 * would become something else. So each macro below hands on the whole id of a
 * probe, with a `_' before it, or a string (but for an sname).
 */
#ifndef SDTCONVERT_SDT_H
#define SDTCONVERT_SDT_H
#define SDT_HEADER_VERSION 1 /* one more for each release that adds a macro or changes what one makes */

/* What macros here expand to is no matter of the style of a project that warnings ask about. */
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC system_header
#endif

/*
 * Probes need ELF, the assembly of gcc and clang, and a machine that sdtconvert knows. Everywhere else (macOS,
 * Windows, wasm, other compilers, MIPS) nothing is left of them, as with -DSDT_DISABLE. Before version 15, clang
 * defines __ELF__ for some systems only.
 */
#ifndef SDT_DISABLE
#if !defined(__GNUC__) || defined(__APPLE__) || defined(_WIN32) || defined(__CYGWIN__) || defined(__UEFI__) || defined(__wasm__) || \
    defined(_AIX)
#define SDT_DISABLE
#elif !defined(__ELF__) && !(defined(__clang__) && __clang_major__ < 15)
#define SDT_DISABLE
#elif !defined(__x86_64__) && !defined(__i386__) && !defined(__arm__) && !defined(__aarch64__) && !defined(__powerpc64__) && \
    !defined(__s390x__) && !((defined(__loongarch__) || defined(__riscv)) && defined(__LP64__))
#define SDT_DISABLE
#endif
#endif

/*
 * In FreeBSD's kernel there is a sys/sdt.h, which many of its headers include. With the
 * directory `freebsd' beside this file in the search path that is all there is to it.
 */
#if defined(_KERNEL) && defined(__FreeBSD__) && defined(__has_include)
#if __has_include(<sys/sdt_stubs.h>)
#define SDT_KERNEL_HEADER_
#endif
#endif
#ifdef SDT_KERNEL_HEADER_
#include <sys/param.h>
#include <sys/queue.h>
#include <sys/sdt.h>
#else

#ifdef __UINTPTR_TYPE__
typedef __UINTPTR_TYPE__ sdt_word_;
#else
#include <stdint.h>
typedef uintptr_t sdt_word_;
#endif

/*
 * The structures of FreeBSD 13. What is "the reader's" starts as zero, and a
 * kernel or an agent keeps there what it likes: FreeBSD's, which counts the
 * arguments as it meets them, would count twice what is counted here.
 */
struct sdt_provider {
	const char *name;	/* `__' stands for `-' */
	void *prov_entry[2];	/* the reader's */
	sdt_word_ id;		/* the reader's */
	int sdt_refs;		/* the reader's */
};

struct sdt_probe {
	int version;		/* sizeof(struct sdt_probe) */
	struct sdt_provider *prov;
	void *probe_entry[2];	/* the reader's */
	void *argtype_list[2];	/* the reader's */
	const char *mod;	/* "" where none was given */
	const char *func;	/* "" where none was given */
	const char *name;	/* `__' stands for `-' */
	sdt_word_ id;		/* the reader's */
	int n_args;		/* the reader's */
	void *sdtp_lf;		/* the reader's */
};

struct sdt_argtype {
	int ndx;		/* 0 is the first argument */
	const char *type;
	const char *xtype;	/* what D programs see instead, or null */
	void *argtype_entry[2];	/* the reader's */
	struct sdt_probe *probe;
};

/*
 * Which forms tracepoints and is-enabled tests have: in programs, NOPs and semaphores. They compile,
 * link and run unconverted, too. A kernel has calls. The NOP of Thumb-1 is shorter than a call, so
 * tracepoints are calls there.
 */
#if __STDC_HOSTED__ && !defined(SDT_DISABLE) && !defined(__KERNEL__) && !defined(_KERNEL) && (defined(__i386__) || defined(__arm__) || defined(__LP64__))
#if !defined(SDT_CALLS) && (!defined(__thumb__) || defined(__thumb2__))
#define SDT_NOPS_
#endif
#ifndef SDT_NO_SEMAPHORES
#define SDT_SEMAPHORES_
#endif
#endif

/*
 * Arguments. What a call passes is a word, as a cast would make it: signed numbers
 * are extended. A NOP takes integers and enumerations as they are, and words of all
 * others. Pointers stay pointers, or clang keeps each twice. Other types are errors, and
 * so is a number of 128 bits.
 *
 * Where a word has 32 bits, of a longer integer the lower half is the argument. i386 has
 * a byte of its own in four registers only, so integers are at least an int there.
 */
#ifdef __cplusplus
#ifdef __GNUC__
#define SDT_INLINE_ __attribute__((always_inline)) inline
#else
#define SDT_INLINE_ inline
#endif
namespace sdt_ {
template <class T> char divides(decltype(T() % 1) *);
template <class T> long divides(...);

template <class T> struct enumeration {
	static const bool value = __is_enum(T);
};
template <class T, bool = enumeration<T>::value> struct integer {
	typedef T type;
};
template <class T> struct integer<T, true> {
	typedef __underlying_type(T) type;
};

template <class T> struct fitting {
#ifdef __i386__
	typedef decltype(+T()) type;
#else
	typedef T type;
#endif
};
#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ == 4
template <> struct fitting<long long> {
	typedef long type;
};
template <> struct fitting<unsigned long long> {
	typedef unsigned long type;
};
#endif

template <class T>
SDT_INLINE_ typename fitting<typename integer<T>::type>::type native(T value)
{
	static_assert(__is_enum(T) || (sizeof(divides<T>(nullptr)) == 1 && !__is_class(T) && !__is_union(T) &&
	    sizeof(T) <= sizeof(long long)), "an argument of a probe is an integer, a float or double of at most a word, an enumeration or a pointer");
	return static_cast<typename fitting<typename integer<T>::type>::type>(value);
}

template <class T> SDT_INLINE_ T *native(T *value)
{
	return value;
}

SDT_INLINE_ const void *native(decltype(nullptr))
{
	return nullptr;
}

/* The bits of a floating-point number: all tracers read a number in a general register. */
SDT_INLINE_ unsigned native(float value)
{
	unsigned bits;
	__builtin_memcpy(&bits, &value, sizeof(bits));
	return bits;
}
#ifdef __LP64__
SDT_INLINE_ unsigned long native(double value)
{
	unsigned long bits;
	__builtin_memcpy(&bits, &value, sizeof(bits));
	return bits;
}
#endif

template <class T> SDT_INLINE_ sdt_word_ word(T value)
{
	return static_cast<sdt_word_>(native(value));
}

template <class T> SDT_INLINE_ sdt_word_ word(T *value)
{
	return reinterpret_cast<sdt_word_>(value);
}

SDT_INLINE_ sdt_word_ word(decltype(nullptr))
{
	return 0;
}

/* As tracers write a size: negative if the number is signed. Assembly negates it. */
template <class T> struct negated {
	enum { size = static_cast<T>(-1) < static_cast<T>(1) ? static_cast<int>(sizeof(T)) : -static_cast<int>(sizeof(T)) };
};
template <class T> struct negated<T *> {
	enum { size = -static_cast<int>(sizeof(T *)) };
};

/* Whether tracers read memory through an argument. */
template <class T> struct points {
	enum { value = 0 };
};
template <class T> struct points<T *> {
	enum { value = 1 };
};
}
/* By value, or a static const member would need a definition. Behind a comma, or g++ would warn of NULL. */
#define SDT_WORD_(x) (::sdt_::word((void(), (x))))
#define SDT_LET_(n, x) auto sdt_##n##_ = ::sdt_::native((void(), (x)));
#define SDT_NEGATED_(v) ::sdt_::negated<decltype(v)>::size
#define SDT_POINTS_(n) ::sdt_::points<decltype(sdt_##n##_)>::value
#elif !defined(__GNUC__)
#define SDT_WORD_(x) (x)
#else
struct sdt_argument_is_no_integer_and_no_pointer;
#define SDT_BAD_ (*(const struct sdt_argument_is_no_integer_and_no_pointer *)0)
#ifdef __SIZEOF_INT128__
#define SDT_INT128_ __int128_t: SDT_BAD_, __uint128_t: SDT_BAD_,
#else
#define SDT_INT128_
#endif
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define SDT_NULLPTR_ __typeof__(nullptr): 0,
#else
#define SDT_NULLPTR_
#endif
#ifdef __CHAR_UNSIGNED__
#define SDT_CHAR_ 1
#else
#define SDT_CHAR_ -1
#endif
/* The bits of a floating-point number: all tracers read a number in a general register. */
#define SDT_BITS_(type, x) (__extension__ (union { __typeof__(((void)0, (x))) from; type to; }){ .from = (x) }).to
#ifdef __LP64__
#define SDT_DOUBLE_(x) SDT_BITS_(unsigned long, x)
#else
#define SDT_DOUBLE_(x) SDT_BAD_
#endif
#define SDT_WORD_(x) ((sdt_word_)__extension__ _Generic((x), float: SDT_BITS_(unsigned, x),		\
    double: SDT_DOUBLE_(x), long double: SDT_BAD_, SDT_INT128_ SDT_NULLPTR_ default: (x)))
/*
 * The argument is evaluated into a variable of its own type. Behind a comma, as that
 * may not be a bit-field's; gcc's types of those are not int, but promoted to it.
 */
#define SDT_LET_(n, x)											\
	__extension__ __auto_type sdt_##n##_given_ = ((void)0, (x));					\
	__extension__ __auto_type sdt_##n##_ = SDT_NATIVE_(sdt_##n##_given_);
#define SDT_NATIVE_(v) __extension__ _Generic((v), _Bool: SDT_SMALL_(v), char: SDT_SMALL_(v),		\
    signed char: SDT_SMALL_(v), short: SDT_SMALL_(v), int: (v), long: (v), long long: SDT_LONG_(long, v),	\
    unsigned char: SDT_SMALL_(v), unsigned short: SDT_SMALL_(v), unsigned: (v), unsigned long: (v),	\
    unsigned long long: SDT_LONG_(unsigned long, v),							\
    float: SDT_BITS_(unsigned, v), double: SDT_DOUBLE_(v),						\
    default: __builtin_choose_expr(sizeof(v) <= sizeof(int) && !SDT_IS_POINTER_(v),			\
	(int)SDT_WORD_(v), (const volatile void *)SDT_WORD_(v)))
#ifdef __i386__
#define SDT_SMALL_(v) ((int)SDT_WORD_(v))
#else
#define SDT_SMALL_(v) (v)
#endif
#if __SIZEOF_POINTER__ == 4
#define SDT_LONG_(type, v) ((type)SDT_WORD_(v))
#else
#define SDT_LONG_(type, v) (v)
#endif
#define SDT_IS_POINTER_(v)										\
    (__builtin_classify_type(__extension__ _Generic((v), float: 0, default: (v))) == __builtin_classify_type((void *)0))
/* Whether tracers read memory through an argument. */
#define SDT_POINTS_(n) SDT_IS_POINTER_(sdt_##n##_given_)
/* As tracers write a size: negative if the number is signed. Assembly negates it. */
#define SDT_NEGATED_(v) (-(int)sizeof(v) * __extension__ _Generic((v), char: SDT_CHAR_,			\
    signed char: -1, short: -1, int: -1, long: -1, long long: -1, default: 1))
#endif

#ifdef SDT_NOPS_
#define SDT_SITE_ SDT_NOP_SITE_
#define SDT_WORDS_0_()
#define SDT_WORDS_1_(a) SDT_LET_(0, a)
#define SDT_WORDS_2_(a, b) SDT_WORDS_1_(a) SDT_LET_(1, b)
#define SDT_WORDS_3_(a, b, c) SDT_WORDS_2_(a, b) SDT_LET_(2, c)
#define SDT_WORDS_4_(a, b, c, d) SDT_WORDS_3_(a, b, c) SDT_LET_(3, d)
#define SDT_WORDS_5_(a, b, c, d, e) SDT_WORDS_4_(a, b, c, d) SDT_LET_(4, e)
#define SDT_WORDS_6_(a, b, c, d, e, f) SDT_WORDS_5_(a, b, c, d, e) SDT_LET_(5, f)
#define SDT_WORDS_7_(a, b, c, d, e, f, g) SDT_WORDS_6_(a, b, c, d, e, f) SDT_LET_(6, g)
#define SDT_WORDS_8_(a, b, c, d, e, f, g, h) SDT_WORDS_7_(a, b, c, d, e, f, g) SDT_LET_(7, h)
#define SDT_WORDS_9_(a, b, c, d, e, f, g, h, i) SDT_WORDS_8_(a, b, c, d, e, f, g, h) SDT_LET_(8, i)
#define SDT_WORDS_10_(a, b, c, d, e, f, g, h, i, j) SDT_WORDS_9_(a, b, c, d, e, f, g, h, i) SDT_LET_(9, j)
#define SDT_WORDS_11_(a, b, c, d, e, f, g, h, i, j, k) SDT_WORDS_10_(a, b, c, d, e, f, g, h, i, j) SDT_LET_(10, k)
#define SDT_WORDS_12_(a, b, c, d, e, f, g, h, i, j, k, l) SDT_WORDS_11_(a, b, c, d, e, f, g, h, i, j, k) SDT_LET_(11, l)
#else
#define SDT_SITE_ SDT_CALL_SITE_
#define SDT_WORDS_0_() SDT_NO_WORDS_
#define SDT_WORDS_1_(a) (SDT_W_(a))
#define SDT_WORDS_2_(a, b) (SDT_W_(a), SDT_W_(b))
#define SDT_WORDS_3_(a, b, c) (SDT_W_(a), SDT_W_(b), SDT_W_(c))
#define SDT_WORDS_4_(a, b, c, d) (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d))
#define SDT_WORDS_5_(a, b, c, d, e) (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e))
#define SDT_WORDS_6_(a, b, c, d, e, f) (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e), SDT_W_(f))
#define SDT_WORDS_7_(a, b, c, d, e, f, g) (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e), SDT_W_(f), SDT_W_(g))
#define SDT_WORDS_8_(a, b, c, d, e, f, g, h) (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e), SDT_W_(f), SDT_W_(g), SDT_W_(h))
#define SDT_WORDS_9_(a, b, c, d, e, f, g, h, i)								\
    (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e), SDT_W_(f), SDT_W_(g), SDT_W_(h), SDT_W_(i))
#define SDT_WORDS_10_(a, b, c, d, e, f, g, h, i, j)							\
    (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e), SDT_W_(f), SDT_W_(g), SDT_W_(h), SDT_W_(i), SDT_W_(j))
#define SDT_WORDS_11_(a, b, c, d, e, f, g, h, i, j, k)							\
    (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e), SDT_W_(f), SDT_W_(g), SDT_W_(h), SDT_W_(i), SDT_W_(j), SDT_W_(k))
#define SDT_WORDS_12_(a, b, c, d, e, f, g, h, i, j, k, l)						\
    (SDT_W_(a), SDT_W_(b), SDT_W_(c), SDT_W_(d), SDT_W_(e), SDT_W_(f), SDT_W_(g), SDT_W_(h), SDT_W_(i), SDT_W_(j), SDT_W_(k), SDT_W_(l))
#endif

#define SDT_PARAMS_0_ (void)
#define SDT_PARAMS_1_ (sdt_word_)
#define SDT_PARAMS_2_ (sdt_word_, sdt_word_)
#define SDT_PARAMS_3_ (sdt_word_, sdt_word_, sdt_word_)
#define SDT_PARAMS_4_ (sdt_word_, sdt_word_, sdt_word_, sdt_word_)
#define SDT_PARAMS_5_ (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_)
#define SDT_PARAMS_6_ (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_)
#define SDT_PARAMS_7_ (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_)
#define SDT_PARAMS_8_ (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_)
#define SDT_PARAMS_9_											\
    (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_,		\
    sdt_word_)
#define SDT_PARAMS_10_											\
    (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_,		\
    sdt_word_, sdt_word_)
#define SDT_PARAMS_11_											\
    (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_,		\
    sdt_word_, sdt_word_, sdt_word_)
#define SDT_PARAMS_12_											\
    (sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_, sdt_word_,		\
    sdt_word_, sdt_word_, sdt_word_, sdt_word_)

#ifndef SDT_DISABLE

/*
 * Stubs and calls of them. Hidden, so that calls are direct whatever -fPIC and
 * -fno-plt make of others (the converter makes nothing hidden of that). nothrow,
 * so that C++ needs no way out. Not cold: that would move the code around a
 * tracepoint, too, out of the way.
 *
 * C declares a stub in the block of its call, under a name with the number of
 * arguments, so that tracepoints of one file cannot disagree. In C++ such a
 * declaration is one of the enclosing namespace's, even of an unnamed one, and
 * g++ 12 forgets its assembler name in templates. There the declaration of a
 * probe declares what tracepoints and tests of it need, under names that say so
 * in the compiler's message where it is missing. DTRACE_PROBE as a NOP needs nothing.
 */
#define SDT_HIDDEN_ visibility("hidden")
#ifdef __i386__ /* where -mrtd has other functions pop their arguments, which no NOP does */
#define SDT_STUB_ __attribute__((nothrow, cdecl, SDT_HIDDEN_))
#else
#define SDT_STUB_ __attribute__((nothrow, SDT_HIDDEN_))
#endif
#define SDT_W_(x) SDT_WORD_(x)
#define SDT_NO_WORDS_ ()

/*
 * For gcc, which weighs a function by its lines of assembly where this is missing. Linux' kernel
 * has macros of the other names of `inline', with attributes.
 */
#if __GNUC__ >= 9 && !defined(__clang__) && !defined(__inline)
#define SDT_ASM_ __asm__ __inline __volatile__
#else
#define SDT_ASM_ __asm__ __volatile__
#endif

#ifdef __cplusplus
#define SDT_EXTERN_ extern "C"
#define SDT_NULL_ nullptr
#define SDT_DECLARE_(id) SDT_DECLARE_STUBS_(id) SDT_DECLARE_TEST_(id) extern "C" struct sdt_probe sdt##id[1]
#define SDT_GUARD_(id) sdt_guard_needs_DTRACE_PROBE_DECLARE_or_SDT_PROBE_DECLARE_of##id
#else
#define SDT_EXTERN_ extern
#define SDT_NULL_ ((void *)0)
#define SDT_DECLARE_(id) extern struct sdt_probe sdt##id[1]
#endif

#ifdef SDT_NOPS_
/*
 * Tracepoints that are NOPs: what a call of the stub is when it is
 * disabled, and a relocation that does nothing, but names the stub. That is weak, so
 * that it may be missing in the end. An entry of .sdt_operands, which linkers leave out
 * of images, has the address and the arguments as the assembler writes them; none in
 * Intel's syntax, which tracers do not read. Arguments are numbers and in registers: not
 * each tracer reads memory that has an index or a name, and clang, given the choice,
 * copies all of them to the stack. A32 has them in variables on the stack, which have
 * neither. An image has the id in .sdt_unconverted, which is not loaded either, unless the
 * object was converted.
 *
 * Link-time optimisation knows no names in assembly, so the stub is an operand that no
 * instruction has, too. gcc is told of an array: of a function its debug information would
 * say that it has no arguments. clang says nothing, and would load the array's address.
 */
#ifdef __cplusplus
#define SDT_DECLARE_NOPS_(id) extern "C" SDT_KIND_(SDT_NAME_(id, 0)) __asm__("__dtrace_probe" #id) SDT_WEAK_;
#define SDT_LET_STUB_(id, n)
#define SDT_NAME_(id, n) sdt_tracepoint_needs_SDT_PROBE_DECLARE_of##id
#else
#define SDT_LET_STUB_(id, n) extern SDT_KIND_(__dtrace_probe##id##_##n) __asm__("__dtrace_probe" #id) SDT_WEAK_;
#define SDT_NAME_(id, n) __dtrace_probe##id##_##n
#define SDT_SELF_NAME_ SDT_NAME_
#endif
#define SDT_WEAK_ __attribute__((weak, SDT_HIDDEN_))
#ifdef __clang__
#define SDT_KIND_(stub) void stub(void)
#else
#define SDT_KIND_(stub) const char stub[]
#endif
#ifdef __cplusplus
/*
 * The operand of a tracepoint that defines its probe, wherever that is: a name which only says that
 * there are tracepoints.
 */
extern "C" SDT_KIND_(__dtrace_probe_) SDT_WEAK_;
#define SDT_SELF_NAME_(id, n) __dtrace_probe_
#endif
#if defined(__x86_64__)
/*
 * The second NOP Linux can arm without a breakpoint, from 7.2 on, and libbpf asks for it there.
 * All others arm the first.
 */
#ifdef SDT_SHORT_NOPS
#define SDT_NOP_ ".byte 0x0f,0x1f,0x44,0x00,0x00"
#else
#define SDT_NOP_ ".byte 0x90,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0"
#endif
#define SDT_ATT_(operands) "{" operands "|}"
#elif defined(__i386__)
#define SDT_NOP_ ".byte 0x3e,0x8d,0x74,0x26,0x00"
#define SDT_ATT_(operands) "{" operands "|}"
#else
#if defined(__thumb__)
#define SDT_NOP_ "nop.w"
#elif defined(__riscv)
#define SDT_NOP_ ".option push\n\t.option norvc\n\tnop\n\tnop\n\t.option pop"
#elif defined(__s390x__)
#define SDT_NOP_ "brcl 0,."
#else
#define SDT_NOP_ "nop"
#endif
#define SDT_ATT_(operands) operands
#endif
#ifdef __powerpc64__ /* where registers are numbers, and numbers have an i before them */
#define SDT_PLACE_(n) "%I" #n "%" #n
#else
#define SDT_PLACE_(n) "%" #n
#endif
#define SDT_NOP_SITE_(id, n, words, stub) do {								\
	SDT_LET_STUB_(id, n) words									\
	if (SDT_ALWAYS_ || SDT_POINTS_##n##_)								\
		SDT_NOP_ASM_(id, n, stub, : "memory");							\
	else												\
		SDT_NOP_ASM_(id, n, stub, );								\
} while (0)
#define SDT_NOP_ASM_(id, n, stub, clobbers)								\
	SDT_ASM_("8808:	" SDT_NOP_ "\n"									\
	"\t.weak __dtrace_probe" #id "\n\t.hidden __dtrace_probe" #id "\n"				\
	"\t.reloc 8808b,BFD_RELOC_NONE,__dtrace_probe" #id "\n"						\
	".pushsection .sdt_operands,\"e?\",%%progbits\n"						\
	"\t.dc.a 8808b\n\t.asciz \"" SDT_ATT_(SDT_STRING_##n##_) "\"\n"					\
	".popsection\n"											\
	".pushsection .sdt_unconverted,\"MS?\",%%progbits,1\n\t.asciz \"" #id "\"\n.popsection"		\
	: : SDT_OPERANDS_##n##_ "X"(stub) clobbers)

/*
 * A tracer reads what pointers lead to, so a tracepoint with a pointer tells the compiler that it
 * reads memory: stores before the tracepoint are done there, and later ones are not. That costs
 * loads behind it, so tracepoints with numbers alone do so with SDT_MEMORY only.
 */
#ifdef SDT_MEMORY
#define SDT_ALWAYS_ 1
#else
#define SDT_ALWAYS_ 0
#endif
#define SDT_POINTS_0_ 0
#define SDT_POINTS_1_ SDT_POINTS_(0)
#define SDT_POINTS_2_ SDT_POINTS_1_ || SDT_POINTS_(1)
#define SDT_POINTS_3_ SDT_POINTS_2_ || SDT_POINTS_(2)
#define SDT_POINTS_4_ SDT_POINTS_3_ || SDT_POINTS_(3)
#define SDT_POINTS_5_ SDT_POINTS_4_ || SDT_POINTS_(4)
#define SDT_POINTS_6_ SDT_POINTS_5_ || SDT_POINTS_(5)
#define SDT_POINTS_7_ SDT_POINTS_6_ || SDT_POINTS_(6)
#define SDT_POINTS_8_ SDT_POINTS_7_ || SDT_POINTS_(7)
#define SDT_POINTS_9_ SDT_POINTS_8_ || SDT_POINTS_(8)
#define SDT_POINTS_10_ SDT_POINTS_9_ || SDT_POINTS_(9)
#define SDT_POINTS_11_ SDT_POINTS_10_ || SDT_POINTS_(10)
#define SDT_POINTS_12_ SDT_POINTS_11_ || SDT_POINTS_(11)

#define SDT_STRING_0_ ""
#define SDT_STRING_1_ "%n0@" SDT_PLACE_(1)
#define SDT_STRING_2_ SDT_STRING_1_ " %n2@" SDT_PLACE_(3)
#define SDT_STRING_3_ SDT_STRING_2_ " %n4@" SDT_PLACE_(5)
#define SDT_STRING_4_ SDT_STRING_3_ " %n6@" SDT_PLACE_(7)
#define SDT_STRING_5_ SDT_STRING_4_ " %n8@" SDT_PLACE_(9)
#define SDT_STRING_6_ SDT_STRING_5_ " %n10@" SDT_PLACE_(11)
#define SDT_STRING_7_ SDT_STRING_6_ " %n12@" SDT_PLACE_(13)
#define SDT_STRING_8_ SDT_STRING_7_ " %n14@" SDT_PLACE_(15)
#define SDT_STRING_9_ SDT_STRING_8_ " %n16@" SDT_PLACE_(17)
#define SDT_STRING_10_ SDT_STRING_9_ " %n18@" SDT_PLACE_(19)
#define SDT_STRING_11_ SDT_STRING_10_ " %n20@" SDT_PLACE_(21)
#define SDT_STRING_12_ SDT_STRING_11_ " %n22@" SDT_PLACE_(23)
/*
 * Thumb has r0 to r7: gdb reads no others, which have names. No constraint of A32 leaves the others out. There, and with
 * more arguments than there are registers, an argument is a variable on the stack.
 */
#define SDT_OPERAND_(v) "n"(SDT_NEGATED_(v)), SDT_IN_(v)
#define SDT_FIFTH_(v) "n"(SDT_NEGATED_(v)), SDT_IN_FIFTH_(v)
#if defined(__arm__) || defined(__i386__)
#define SDT_IN_FIFTH_(v) "m"(v)
#else
#define SDT_IN_FIFTH_ SDT_IN_
#endif
#if defined(__thumb__)
#define SDT_IN_(v) "nl"(v)
#elif defined(__arm__)
#define SDT_IN_(v) "m"(v)
#else
#define SDT_IN_(v) "nr"(v)
#endif
#define SDT_OPERANDS_0_
#define SDT_OPERANDS_1_ SDT_OPERAND_(sdt_0_),
#define SDT_OPERANDS_2_ SDT_OPERANDS_1_ SDT_OPERAND_(sdt_1_),
#define SDT_OPERANDS_3_ SDT_OPERANDS_2_ SDT_OPERAND_(sdt_2_),
#define SDT_OPERANDS_4_ SDT_OPERANDS_3_ SDT_OPERAND_(sdt_3_),
#define SDT_OPERANDS_5_ SDT_OPERANDS_4_ SDT_FIFTH_(sdt_4_),
#define SDT_OPERANDS_6_ SDT_OPERANDS_5_ SDT_FIFTH_(sdt_5_),
#define SDT_OPERANDS_7_ SDT_OPERANDS_6_ SDT_FIFTH_(sdt_6_),
#define SDT_OPERANDS_8_ SDT_OPERANDS_7_ SDT_FIFTH_(sdt_7_),
#define SDT_OPERANDS_9_ SDT_OPERANDS_8_ SDT_FIFTH_(sdt_8_),
#define SDT_OPERANDS_10_ SDT_OPERANDS_9_ SDT_FIFTH_(sdt_9_),
#define SDT_OPERANDS_11_ SDT_OPERANDS_10_ SDT_FIFTH_(sdt_10_),
#define SDT_OPERANDS_12_ SDT_OPERANDS_11_ SDT_FIFTH_(sdt_11_),
#endif

#ifdef __cplusplus
#define SDT_CALL_SITE_(id, n, words, stub) do { SDT_CALLED_(id) words; } while (0)
#define SDT_CALLED_(id) sdt_tracepoint_needs_DTRACE_PROBE_DECLARE_or_SDT_PROBE_DECLARE_of##id
#define SDT_OVERLOAD_(id, n) void SDT_CALLED_(id) SDT_PARAMS_##n##_ __asm__("__dtrace_probe" #id) SDT_STUB_
#define SDT_DECLARE_CALLS_(id)										\
	SDT_OVERLOAD_(id, 0); SDT_OVERLOAD_(id, 1); SDT_OVERLOAD_(id, 2);				\
	SDT_OVERLOAD_(id, 3); SDT_OVERLOAD_(id, 4); SDT_OVERLOAD_(id, 5);				\
	SDT_OVERLOAD_(id, 6); SDT_OVERLOAD_(id, 7); SDT_OVERLOAD_(id, 8);				\
	SDT_OVERLOAD_(id, 9); SDT_OVERLOAD_(id, 10); SDT_OVERLOAD_(id, 11); SDT_OVERLOAD_(id, 12);
#else
#define SDT_CALL_SITE_(id, n, words, stub) do {								\
	extern void __dtrace_probe##id##_##n SDT_PARAMS_##n##_ __asm__("__dtrace_probe" #id) SDT_STUB_;	\
	__dtrace_probe##id##_##n words;									\
} while (0)
#endif

#ifdef SDT_NOPS_
#define SDT_DECLARE_STUBS_(id) SDT_DECLARE_NOPS_(id)
#else
#define SDT_DECLARE_STUBS_(id) SDT_DECLARE_CALLS_(id)
#endif
#define SDT_CALL_(id, n, words) SDT_SITE_(id, n, words, SDT_NAME_(id, n))

#ifdef SDT_SEMAPHORES_
/*
 * Tests that read the probe's semaphore, a number that tracers count up. The assembler
 * defines it, once for all of a program or library: where the test was true, so that
 * code around a test which is not knows nothing of it. Four bytes each, behind a page's
 * beginning that is once in an image: what is armed before a program starts needs the
 * section to have a page of its own with some linkers.
 *
 * In C++ that is in a function without a name: other expressions with assembly in them
 * may stand in functions alone.
 */
#define SDT_SEMAPHORE_(id)										\
	".ifndef __dtrace_semaphore" #id "\n"								\
	".ifndef _.probes.base\n"									\
	".pushsection .probes,\"awG\",\"progbits\",_.probes.base,comdat\n\t.balign 4096\n"		\
	"\t.weak _.probes.base\n\t.hidden _.probes.base\n"						\
	"_.probes.base:	.zero 4\n.popsection\n.endif\n"							\
	".pushsection .probes,\"awG\",\"progbits\",__dtrace_semaphore" #id ",comdat\n\t.balign 4\n"	\
	"\t.weak __dtrace_semaphore" #id "\n\t.hidden __dtrace_semaphore" #id "\n"			\
	"\t.type __dtrace_semaphore" #id ",\"object\"\n\t.size __dtrace_semaphore" #id ",2\n"		\
	"__dtrace_semaphore" #id ":\n8809:	.zero 4\n\t.reloc 8809b,BFD_RELOC_NONE,_.probes.base\n"	\
	".popsection\n.endif"
#define SDT_GUARDED_BY_(id, guard) SDT_ASM_(".pushsection .sdt_guards,\"e?\",%%progbits\n"		\
	"\t.asciz \"" #id "\"\n\t.asciz \"" #guard "\"\n.popsection" : : )
#ifdef __cplusplus
#define SDT_TESTED_(id) volatile unsigned short SDT_GUARD_(id) __asm__("__dtrace_semaphore" #id) __attribute__((SDT_HIDDEN_));
#define SDT_DECLARE_TEST_(id) extern "C" SDT_TESTED_(id)
#define SDT_TEST_(id) (__builtin_expect(SDT_GUARD_(id) != 0, 0) && []() __attribute__((always_inline)) {				\
	SDT_ASM_(SDT_SEMAPHORE_(id) : :);								\
	return true;											\
}())
#else
#define SDT_TEST_(id) (__extension__({									\
	extern volatile unsigned short __dtrace_semaphore##id __attribute__((SDT_HIDDEN_));		\
	__builtin_expect(__dtrace_semaphore##id != 0, 0) && __extension__({ SDT_ASM_(SDT_SEMAPHORE_(id) : :); 1; });				\
}) != 0)
#endif
#else
/* A test that a kernel or an agent makes true is of one probe. */
#define SDT_GUARDED_BY_(id, guard) sdt_shared_guards_need_semaphores
#ifdef __cplusplus
#define SDT_TESTED_(id) int SDT_GUARD_(id)(void) __asm__("__dtrace_isenabled" #id) SDT_STUB_;
#define SDT_DECLARE_TEST_(id) SDT_TESTED_(id)
#define SDT_TEST_(id) (__builtin_expect(SDT_GUARD_(id)() != 0, 0) != 0)
#else
#define SDT_TEST_(id) (__extension__({									\
	extern int __dtrace_isenabled##id(void) SDT_STUB_;						\
	__builtin_expect(__dtrace_isenabled##id() != 0, 0);						\
}) != 0)
#endif
#endif

/*
 * Definitions. A linker set is an array of pointers that the linker puts
 * together; they are not const, so that the section is writable in every
 * object, as relocations need it to be. Linkers that collect garbage keep what
 * is retained; where the compiler knows no such thing, they keep what a
 * reference to __start_set_... keeps.
 */
#if defined(__has_attribute) && !defined(__KERNEL__) /* modules of Linux are linked by ld -r, which keeps all, and sections once */
#if __has_attribute(retain)
#define SDT_KEEP_ used, retain
#endif
#endif
#ifndef SDT_KEEP_
#define SDT_KEEP_ used
#endif
#define SDT_SET_(set) __attribute__((SDT_KEEP_, section("set_" set)))

#define SDT_DECLARE_PROVIDER_(id) SDT_EXTERN_ struct sdt_provider sdt_provider##id[1]
#define SDT_PROVIDER_(id, string)									\
	SDT_DECLARE_PROVIDER_(id);									\
	struct sdt_provider sdt_provider##id[1] = { { string, { SDT_NULL_, SDT_NULL_ }, 0, 0 } };	\
	static struct sdt_provider *sdt_providers_set##id SDT_SET_("sdt_providers_set") = sdt_provider##id
#define SDT_OBJECT_(id, provider, mod, func, name)							\
	SDT_DECLARE_(id);										\
	struct sdt_probe sdt##id[1] = { { sizeof(struct sdt_probe), provider, { SDT_NULL_, SDT_NULL_ },	\
	    { SDT_NULL_, SDT_NULL_ }, mod, func, name, 0, 0, SDT_NULL_ } };				\
	static struct sdt_probe *sdt_probes_set##id SDT_SET_("sdt_probes_set") = sdt##id
#define SDT_ARG_(id, n, type, xtype)									\
	static struct sdt_argtype sdt_argtype_##n##id[1] = { { n, type, xtype, { SDT_NULL_, SDT_NULL_ }, sdt##id } };	\
	static struct sdt_argtype *sdt_argtypes_set_##n##id SDT_SET_("sdt_argtypes_set") = sdt_argtype_##n##id

/*
 * A probe that is defined where it is used. C cannot define a global object in a
 * function, a static one would be another in each function, and one of a C++
 * inline function is none that the converter finds. The assembler can: one
 * object for an id in all of a program or library, in a COMDAT group, hidden,
 * with its provider, argument types and entries of the linker sets. BFD_RELOC_NONE
 * does nothing but tell the linker to keep what it names together with the probe,
 * which the records of tracepoints keep. All fields are words or padded to words.
 *
 * The first loop looks for `___' in the id, the second writes what is before it.
 * Labels start with 88, as the assembler takes 1b for a number in Intel's syntax.
 */
#define SDT_QUOTED_(x) #x
#define SDT_QUOTE_(x) SDT_QUOTED_(x)
#define SDT_SIZE_ SDT_QUOTE_(__SIZEOF_POINTER__)
#define SDT_ENTRY_(set, label, object)									\
	"\t.reloc 8804b,BFD_RELOC_NONE," label "f\n"							\
	".pushsection set_" set ",\"aw?\",%progbits\n\t.balign " SDT_SIZE_ "\n" label ":\t.dc.a " object "b\n.popsection\n"
#define SDT_INT_(n) "\t.4byte " n "\n\t.balign " SDT_SIZE_ "\n"
#define SDT_TYPE_(n, type)										\
	"882" #n ":\t.asciz \"" type "\"\n\t.balign " SDT_SIZE_ "\n"					\
	"883" #n ":\n" SDT_INT_(#n) "\t.dc.a 882" #n "b,0,0,0,8804b\n"					\
	SDT_ENTRY_("sdt_argtypes_set", "884" #n, "883" #n)
#define SDT_SELF_(id, name, types) SDT_ASM_(								\
	".ifndef sdt" #id "\n"										\
	".pushsection .data.sdt" #id ",\"awG\",%progbits,sdt" #id ",comdat\n"				\
	"8801:\t.asciz \"" name "\"\n"									\
	"\t.set .Lsdt_i,0\n\t.set .Lsdt_run,0\n\t.set .Lsdt_cut,0\n"					\
	"\t.irpc c," name "\n"										\
	"\t.ifc \\c,_\n\t.set .Lsdt_run,.Lsdt_run+1\n\t.else\n"						\
	"\t.if (.Lsdt_run>2)&&(.Lsdt_cut==0)\n\t.set .Lsdt_cut,.Lsdt_i-.Lsdt_run\n\t.endif\n"		\
	"\t.set .Lsdt_run,0\n\t.endif\n\t.set .Lsdt_i,.Lsdt_i+1\n\t.endr\n"				\
	"8802:\n\t.if .Lsdt_cut\n\t.set .Lsdt_i,0\n"							\
	"\t.irpc c," name "\n"										\
	"\t.if .Lsdt_i<.Lsdt_cut\n\t.ascii \"\\c\"\n\t.endif\n\t.set .Lsdt_i,.Lsdt_i+1\n\t.endr\n"	\
	"\t.byte 0\n\t.set .Lsdt_cut,.Lsdt_cut+3\n\t.else\n\t.asciz \"sdt\"\n\t.endif\n"		\
	"8803:	.byte 0\n\t.balign " SDT_SIZE_ "\n"							\
	"\t.weak sdt" #id "\n\t.hidden sdt" #id "\n"							\
	"\t.type sdt" #id ",%object\n\t.size sdt" #id ",12*" SDT_SIZE_ "\n"				\
	"sdt" #id ":\n8804:\n" SDT_INT_("12*" SDT_SIZE_)						\
	"\t.dc.a 8805f,0,0,0,0,8803b,8803b,8801b+.Lsdt_cut,0\n" SDT_INT_("0") "\t.dc.a 0\n"		\
	"8805:	.dc.a 8802b,0,0,0\n" SDT_INT_("0")							\
	SDT_ENTRY_("sdt_probes_set", "8806", "8804") SDT_ENTRY_("sdt_providers_set", "8807", "8805") types	\
	".popsection\n.endif")
#define SDT_FIRE_(id, name, n, words, types) do {							\
	SDT_SELF_(id, name, types); SDT_SITE_(id, n, words, SDT_SELF_NAME_(id, n));		\
} while (0)

#else
/* Arguments are checked and never evaluated, and what is used only in them counts as used. */
#define SDT_W_(x) (void)SDT_WORD_(x)
#define SDT_NO_WORDS_ ((void)0)
#define SDT_CALL_(id, n, words) do { if (0) words; } while (0)
#define SDT_FIRE_(id, name, n, words, types) SDT_CALL_(id, n, words)
#define SDT_TEST_(id) (0)
#define SDT_GUARDED_BY_(id, guard) ((void)0)
#ifdef __cplusplus
#define SDT_DECLARE_(id) static_assert(true, "")
#else
#define SDT_DECLARE_(id) struct sdt_probe
#endif
#define SDT_DECLARE_PROVIDER_(id) SDT_DECLARE_(id)
#define SDT_PROVIDER_(id, string) SDT_DECLARE_(id)
#define SDT_DEFINE_(types, id, provider, ...) SDT_DECLARE_(id)
#define SDT_PROBE_DEFINE(prov, mod, func, ...) SDT_DECLARE_(_##prov)
#endif

/*
 * The generations of SDT(9): definitions have an argument more in the older one,
 * sname, the name as people read it. A pad of that many types makes SDT_NEW_ the
 * 16th of them all, or SDT_OLD_ if there is one more.
 */
#define SDT_COUNT_(...) SDT_16TH_(__VA_ARGS__, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SDT_16TH_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ...) p
#define SDT_JOIN_(a, b) SDT_JOINED_(a, b)
#define SDT_JOINED_(a, b) a##b
#define SDT_PICK_(...) SDT_16TH_(__VA_ARGS__)
#ifndef SDT_DISABLE
#define SDT_DEFINE_(types, id, provider, mod, func, name, ...)						\
	SDT_PICK_(__VA_ARGS__, SDT_PAD_##types##_)(SDT_ARGS_##types##_, id, provider, mod, func, name, __VA_ARGS__)
#endif
#define SDT_PAD_1_ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_2_ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_3_ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_4_ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_5_ 0, 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_6_ 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_7_ 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_X1_ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_X2_ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_X3_ 0, 0, 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_X4_ 0, 0, 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_X5_ 0, 0, 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_X6_ 0, 0, SDT_OLD_, SDT_NEW_, 0
#define SDT_PAD_X7_ SDT_OLD_, SDT_NEW_, 0
#define SDT_NEW_(args, id, provider, mod, func, name, ...)						\
	SDT_OBJECT_(id, provider, mod, func, name); args(id, __VA_ARGS__)
#define SDT_OLD_(args, id, provider, mod, func, name, sname, ...)					\
	SDT_OBJECT_(id, provider, mod, func, #sname); args(id, __VA_ARGS__)
#define SDT_DEFINE_0_1(provider, mod, func, name, id) SDT_OBJECT_(id, provider, mod, func, name)
#define SDT_DEFINE_0_2(provider, mod, func, names, id, sname) SDT_OBJECT_(id, provider, mod, func, #sname)

#define SDT_ARGS_1_(id, a) SDT_ARG_(id, 0, a, SDT_NULL_)
#define SDT_ARGS_2_(id, a, b) SDT_ARGS_1_(id, a); SDT_ARG_(id, 1, b, SDT_NULL_)
#define SDT_ARGS_3_(id, a, b, c) SDT_ARGS_2_(id, a, b); SDT_ARG_(id, 2, c, SDT_NULL_)
#define SDT_ARGS_4_(id, a, b, c, d) SDT_ARGS_3_(id, a, b, c); SDT_ARG_(id, 3, d, SDT_NULL_)
#define SDT_ARGS_5_(id, a, b, c, d, e) SDT_ARGS_4_(id, a, b, c, d); SDT_ARG_(id, 4, e, SDT_NULL_)
#define SDT_ARGS_6_(id, a, b, c, d, e, f) SDT_ARGS_5_(id, a, b, c, d, e); SDT_ARG_(id, 5, f, SDT_NULL_)
#define SDT_ARGS_7_(id, a, b, c, d, e, f, g) SDT_ARGS_6_(id, a, b, c, d, e, f); SDT_ARG_(id, 6, g, SDT_NULL_)

#define SDT_ARGS_X1_(id, a, xa) SDT_ARG_(id, 0, a, xa)
#define SDT_ARGS_X2_(id, a, xa, b, xb) SDT_ARGS_X1_(id, a, xa); SDT_ARG_(id, 1, b, xb)
#define SDT_ARGS_X3_(id, a, xa, b, xb, c, xc) SDT_ARGS_X2_(id, a, xa, b, xb); SDT_ARG_(id, 2, c, xc)
#define SDT_ARGS_X4_(id, a, xa, b, xb, c, xc, d, xd)							\
	SDT_ARGS_X3_(id, a, xa, b, xb, c, xc); SDT_ARG_(id, 3, d, xd)
#define SDT_ARGS_X5_(id, a, xa, b, xb, c, xc, d, xd, e, xe)						\
	SDT_ARGS_X4_(id, a, xa, b, xb, c, xc, d, xd); SDT_ARG_(id, 4, e, xe)
#define SDT_ARGS_X6_(id, a, xa, b, xb, c, xc, d, xd, e, xe, f, xf)					\
	SDT_ARGS_X5_(id, a, xa, b, xb, c, xc, d, xd, e, xe); SDT_ARG_(id, 5, f, xf)
#define SDT_ARGS_X7_(id, a, xa, b, xb, c, xc, d, xd, e, xe, f, xf, g, xg)				\
	SDT_ARGS_X6_(id, a, xa, b, xb, c, xc, d, xd, e, xe, f, xf); SDT_ARG_(id, 6, g, xg)

/*
 * The macros of SDT(9). Providers and probes are defined once in a program;
 * files that use one of another file declare it. Both at file scope, in C++ in
 * no unnamed namespace, with a `;' behind.
 */
#define SDT_PROVIDER_DECLARE(prov) SDT_DECLARE_PROVIDER_(_##prov)
#define SDT_PROVIDER_DEFINE(prov) SDT_PROVIDER_(_##prov, #prov)

#define SDT_PROBE_DECLARE(prov, mod, func, name) SDT_DECLARE_(_##prov##_##mod##_##func##_##name)

#ifndef SDT_DISABLE
/* Here name and perhaps sname are __VA_ARGS__, which may not be empty. */
#define SDT_PROBE_DEFINE(prov, mod, func, ...)								\
	SDT_JOIN_(SDT_DEFINE_0_, SDT_COUNT_(__VA_ARGS__))(sdt_provider_##prov, #mod, #func, #__VA_ARGS__,	\
	    _##prov##_##mod##_##func##_##__VA_ARGS__)
#endif
#define SDT_PROBE_DEFINE0 SDT_PROBE_DEFINE
#define SDT_PROBE_DEFINE0_XLATE SDT_PROBE_DEFINE
#define SDT_PROBE_DEFINE1(p, m, f, n, ...) SDT_DEFINE_(1, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE2(p, m, f, n, ...) SDT_DEFINE_(2, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE3(p, m, f, n, ...) SDT_DEFINE_(3, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE4(p, m, f, n, ...) SDT_DEFINE_(4, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE5(p, m, f, n, ...) SDT_DEFINE_(5, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE6(p, m, f, n, ...) SDT_DEFINE_(6, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE7(p, m, f, n, ...) SDT_DEFINE_(7, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)

#define SDT_PROBE_DEFINE1_XLATE(p, m, f, n, ...) SDT_DEFINE_(X1, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE2_XLATE(p, m, f, n, ...) SDT_DEFINE_(X2, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE3_XLATE(p, m, f, n, ...) SDT_DEFINE_(X3, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE4_XLATE(p, m, f, n, ...) SDT_DEFINE_(X4, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE5_XLATE(p, m, f, n, ...) SDT_DEFINE_(X5, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE6_XLATE(p, m, f, n, ...) SDT_DEFINE_(X6, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)
#define SDT_PROBE_DEFINE7_XLATE(p, m, f, n, ...) SDT_DEFINE_(X7, _##p##_##m##_##f##_##n, sdt_provider_##p, #m, #f, #n, __VA_ARGS__)

#define SDT_PROBE0(p, m, f, n) SDT_CALL_(_##p##_##m##_##f##_##n, 0, SDT_WORDS_0_())
#define SDT_PROBE1(p, m, f, n, a0) SDT_CALL_(_##p##_##m##_##f##_##n, 1, SDT_WORDS_1_(a0))
#define SDT_PROBE2(p, m, f, n, a0, a1) SDT_CALL_(_##p##_##m##_##f##_##n, 2, SDT_WORDS_2_(a0, a1))
#define SDT_PROBE3(p, m, f, n, a0, a1, a2) SDT_CALL_(_##p##_##m##_##f##_##n, 3, SDT_WORDS_3_(a0, a1, a2))
#define SDT_PROBE4(p, m, f, n, a0, a1, a2, a3) SDT_CALL_(_##p##_##m##_##f##_##n, 4, SDT_WORDS_4_(a0, a1, a2, a3))
#define SDT_PROBE5(p, m, f, n, a0, a1, a2, a3, a4) SDT_CALL_(_##p##_##m##_##f##_##n, 5, SDT_WORDS_5_(a0, a1, a2, a3, a4))
#define SDT_PROBE6(p, m, f, n, a0, a1, a2, a3, a4, a5) SDT_CALL_(_##p##_##m##_##f##_##n, 6, SDT_WORDS_6_(a0, a1, a2, a3, a4, a5))
#define SDT_PROBE7(p, m, f, n, a0, a1, a2, a3, a4, a5, a6) SDT_CALL_(_##p##_##m##_##f##_##n, 7, SDT_WORDS_7_(a0, a1, a2, a3, a4, a5, a6))
#define SDT_PROBE SDT_PROBE5
#define SDT_PROBE_ENABLED(prov, mod, func, name) SDT_TEST_(_##prov##_##mod##_##func##_##name)

/*
 * illumos' macros. The id is `<provider>___<name>', or else a name of the
 * provider `sdt'. They define the probe where they are used. C++ needs it
 * declared, as above, for guards and for tracepoints that are calls.
 */
#ifdef _sdtp_sys_sdt /* a header of sdtconvert's dtrace -h has brought SystemTap's */
#undef DTRACE_PROBE
#undef DTRACE_PROBE1
#undef DTRACE_PROBE2
#undef DTRACE_PROBE3
#undef DTRACE_PROBE4
#undef DTRACE_PROBE5
#undef DTRACE_PROBE6
#undef DTRACE_PROBE7
#undef DTRACE_PROBE8
#undef DTRACE_PROBE9
#undef DTRACE_PROBE10
#undef DTRACE_PROBE11
#undef DTRACE_PROBE12
#endif
#define DTRACE_PROBE_DECLARE(name) SDT_DECLARE_(_##name)
#define DTRACE_PROBE_ENABLED(name) SDT_TEST_(_##name)
/*
 * A statement beside a tracepoint: who traces the probe makes DTRACE_PROBE_ENABLED(guard) true. So
 * several probes share a guard, which need not be a probe.
 */
#define DTRACE_PROBE_GUARDED_BY(name, guard) SDT_GUARDED_BY_(_##name, _##guard)
#define DTRACE_PROBE(name) SDT_FIRE_(_##name, #name, 0, SDT_WORDS_0_(), "")
#define DTRACE_PROBE1(name, t0, a0) SDT_FIRE_(_##name, #name, 1, SDT_WORDS_1_(a0), SDT_TYPE_(0, #t0))
#define DTRACE_PROBE2(name, t0, a0, t1, a1)								\
	SDT_FIRE_(_##name, #name, 2, SDT_WORDS_2_(a0, a1), SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1))
#define DTRACE_PROBE3(name, t0, a0, t1, a1, t2, a2)							\
	SDT_FIRE_(_##name, #name, 3, SDT_WORDS_3_(a0, a1, a2),						\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2))
#define DTRACE_PROBE4(name, t0, a0, t1, a1, t2, a2, t3, a3)						\
	SDT_FIRE_(_##name, #name, 4, SDT_WORDS_4_(a0, a1, a2, a3),					\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3))
#define DTRACE_PROBE5(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4)					\
	SDT_FIRE_(_##name, #name, 5, SDT_WORDS_5_(a0, a1, a2, a3, a4),					\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3) SDT_TYPE_(4, #t4))
#define DTRACE_PROBE6(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5)				\
	SDT_FIRE_(_##name, #name, 6, SDT_WORDS_6_(a0, a1, a2, a3, a4, a5),				\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3) SDT_TYPE_(4, #t4) SDT_TYPE_(5, #t5))
#define DTRACE_PROBE7(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6)			\
	SDT_FIRE_(_##name, #name, 7, SDT_WORDS_7_(a0, a1, a2, a3, a4, a5, a6),				\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3)			\
	    SDT_TYPE_(4, #t4) SDT_TYPE_(5, #t5) SDT_TYPE_(6, #t6))
#define DTRACE_PROBE8(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7)		\
	SDT_FIRE_(_##name, #name, 8, SDT_WORDS_8_(a0, a1, a2, a3, a4, a5, a6, a7),			\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3)			\
	    SDT_TYPE_(4, #t4) SDT_TYPE_(5, #t5) SDT_TYPE_(6, #t6) SDT_TYPE_(7, #t7))
#define DTRACE_PROBE9(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7,		\
    t8, a8)												\
	SDT_FIRE_(_##name, #name, 9, SDT_WORDS_9_(a0, a1, a2, a3, a4, a5, a6, a7, a8),			\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3)			\
	    SDT_TYPE_(4, #t4) SDT_TYPE_(5, #t5) SDT_TYPE_(6, #t6) SDT_TYPE_(7, #t7)			\
	    SDT_TYPE_(8, #t8))
#define DTRACE_PROBE10(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7,		\
    t8, a8, t9, a9)											\
	SDT_FIRE_(_##name, #name, 10, SDT_WORDS_10_(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9),		\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3)			\
	    SDT_TYPE_(4, #t4) SDT_TYPE_(5, #t5) SDT_TYPE_(6, #t6) SDT_TYPE_(7, #t7)			\
	    SDT_TYPE_(8, #t8) SDT_TYPE_(9, #t9))
#define DTRACE_PROBE11(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7,		\
    t8, a8, t9, a9, t10, a10)										\
	SDT_FIRE_(_##name, #name, 11, SDT_WORDS_11_(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10),	\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3)			\
	    SDT_TYPE_(4, #t4) SDT_TYPE_(5, #t5) SDT_TYPE_(6, #t6) SDT_TYPE_(7, #t7)			\
	    SDT_TYPE_(8, #t8) SDT_TYPE_(9, #t9) SDT_TYPE_(10, #t10))
#define DTRACE_PROBE12(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7,		\
    t8, a8, t9, a9, t10, a10, t11, a11)									\
	SDT_FIRE_(_##name, #name, 12, SDT_WORDS_12_(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11),	\
	    SDT_TYPE_(0, #t0) SDT_TYPE_(1, #t1) SDT_TYPE_(2, #t2) SDT_TYPE_(3, #t3)			\
	    SDT_TYPE_(4, #t4) SDT_TYPE_(5, #t5) SDT_TYPE_(6, #t6) SDT_TYPE_(7, #t7)			\
	    SDT_TYPE_(8, #t8) SDT_TYPE_(9, #t9) SDT_TYPE_(10, #t10) SDT_TYPE_(11, #t11))

#endif
#endif
