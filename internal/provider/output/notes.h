#ifndef _sdtp_notes
#define _sdtp_notes 1
/* NOLINTBEGIN(bugprone-macro-parentheses): names and pieces of assembly are no expressions. */
#if defined(__FreeBSD__) || defined(__sun)
#error "this header has probes of Linux: make it for the system, with --target"
#endif
#if defined(__ELF__) && defined(__GNUC__)
/* SystemTap's dtrace -h includes its <sys/sdt.h>, whose macros sources go on with. Those of sdt.h with the same names stay. */
#if defined(__has_include) && !defined(_SYS_SDT_H)
#if __has_include(<sys/sdt.h>)
#ifdef SDTCONVERT_SDT_H
#pragma push_macro("DTRACE_PROBE")
#pragma push_macro("DTRACE_PROBE1")
#pragma push_macro("DTRACE_PROBE2")
#pragma push_macro("DTRACE_PROBE3")
#pragma push_macro("DTRACE_PROBE4")
#pragma push_macro("DTRACE_PROBE5")
#pragma push_macro("DTRACE_PROBE6")
#pragma push_macro("DTRACE_PROBE7")
#pragma push_macro("DTRACE_PROBE8")
#pragma push_macro("DTRACE_PROBE9")
#pragma push_macro("DTRACE_PROBE10")
#pragma push_macro("DTRACE_PROBE11")
#pragma push_macro("DTRACE_PROBE12")
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
#ifdef __cplusplus
extern "C++" {
#include <sys/sdt.h>
}
#else
#include <sys/sdt.h>
#endif
#ifdef SDTCONVERT_SDT_H
#pragma pop_macro("DTRACE_PROBE")
#pragma pop_macro("DTRACE_PROBE1")
#pragma pop_macro("DTRACE_PROBE2")
#pragma pop_macro("DTRACE_PROBE3")
#pragma pop_macro("DTRACE_PROBE4")
#pragma pop_macro("DTRACE_PROBE5")
#pragma pop_macro("DTRACE_PROBE6")
#pragma pop_macro("DTRACE_PROBE7")
#pragma pop_macro("DTRACE_PROBE8")
#pragma pop_macro("DTRACE_PROBE9")
#pragma pop_macro("DTRACE_PROBE10")
#pragma pop_macro("DTRACE_PROBE11")
#pragma pop_macro("DTRACE_PROBE12")
#else
#define _sdtp_sys_sdt 1 /* which sdt.h asks for */
#endif
#endif
#endif
#endif
#if defined(__ELF__) && defined(__GNUC__) && !defined(SDT_DISABLE)
/*
 * An argument is told as its size, 1, 2, 4 or 8, with 0x8000 if it is signed, and a place. gdb reads no other sizes, and
 * none of the arguments if there is one. So what is no integer, enumeration or pointer is told as an unsigned number of
 * its bits, if it has such a size, and else by its address: it is "far" then.
 */
typedef unsigned char _sdtp_u1 __attribute__((__may_alias__));
typedef unsigned short _sdtp_u2 __attribute__((__may_alias__, __aligned__(1)));
typedef unsigned int _sdtp_u4 __attribute__((__may_alias__, __aligned__(1)));
__extension__ typedef unsigned long long _sdtp_u8 __attribute__((__may_alias__, __aligned__(1)));
#define _sdtp_whole(size) ((size) == 1 || (size) == 2 || (size) == 4 || (size) == 8)
#ifdef __cplusplus
extern "C++" {
namespace _sdtp {
enum kind { number, bits, far };
template <class T, bool Enum = __is_enum(T)> struct type {
	enum { sign = 0, what = !_sdtp_whole(sizeof(T)) ? far : __is_class(T) || __is_union(T) ? bits : number };
};
template <class T> struct type<T, true> : type<__underlying_type(T)> {};
#define _sdtp_char char /* scripts look for one behind a parenthesis */
#define _sdtp_signed(t) template <> struct type<t, false> { enum { sign = 0x8000, what = number }; };
#define _sdtp_float(t) template <> struct type<t, false> { enum { sign = 0, what = _sdtp_whole(sizeof(t)) ? bits : far }; };
_sdtp_signed(signed char) _sdtp_signed(short) _sdtp_signed(int) _sdtp_signed(long) __extension__ _sdtp_signed(long long)
#ifndef __CHAR_UNSIGNED__
_sdtp_signed(_sdtp_char)
#endif
#ifndef __WCHAR_UNSIGNED__
_sdtp_signed(wchar_t)
#endif
_sdtp_float(float) _sdtp_float(double) _sdtp_float(long double) __extension__ _sdtp_float(__complex__ float)
#undef _sdtp_char
#undef _sdtp_signed
#undef _sdtp_float
template <class T> struct told { enum { size = int(type<T>::what) == far ? sizeof(_sdtp_u1 *) : sizeof(T), value = int(size) | int(type<T>::sign) }; };
template <class T> char (&tell(T))[told<T>::value];
template <class T> struct points { enum { value = __is_class(T) || __is_union(T) || int(type<T>::what) == far }; };
template <class T> struct points<T *> { enum { value = 1 }; };
template <class T> char (&reach(T))[1 + points<T>::value];

/* A structure keeps its address. One that has none lives as long as what it is kept in. */
template <class T, bool Class = __is_class(T) || __is_union(T)> struct kept { typedef T result; };
template <class T> struct kept<T, true> { typedef const T &result; };
template <class T> typename kept<T>::result keep(T);
template <__SIZE_TYPE__ Size> struct word {};
template <> struct word<1> { typedef _sdtp_u1 result; };
template <> struct word<2> { typedef _sdtp_u2 result; };
template <> struct word<4> { typedef _sdtp_u4 result; };
template <> struct word<8> { typedef _sdtp_u8 result; };
template <class T, int What = type<T>::what> struct passed {
	__attribute__((__always_inline__)) static inline T of(const T &x) { return x; }
};
template <class T> struct passed<T, far> {
	__attribute__((__always_inline__)) static inline const _sdtp_u1 *of(const T &x) { return &reinterpret_cast<const _sdtp_u1 &>(x); }
};
template <class T> struct passed<T, bits> {
	typedef typename word<sizeof(T)>::result result;
	__attribute__((__always_inline__)) static inline result of(const T &x) { return *reinterpret_cast<const result *>(passed<T, far>::of(x)); }
};
template <class T> passed<T> pass(T); /* no function of its own: in the name of one compilers have no __is_enum */
}
}
#define _sdtp_told(x) sizeof(::_sdtp::tell(x))
#define _sdtp_int(x) static_cast<int>(x)
#define _sdtp_points(x) (sizeof(::_sdtp::reach(x)) > 1)
#define _sdtp_load(s) static_cast<int>(static_cast<const volatile unsigned short &>(s))
/* Behind a comma, or g++ would warn of NULL. */
#define _sdtp_keep(n, x) typedef __decltype(::_sdtp::pass(x)) _sdtp_p##n; __decltype(::_sdtp::keep(x)) _sdtp_k##n = (static_cast<void>(0), x);
#define _sdtp_passed(n, x) _sdtp_p##n::of(_sdtp_k##n)
#define _sdtp_type(x) __decltype(x)
#else
#define _sdtp_class(x) __builtin_classify_type(x)
#define _sdtp_pointer(x) (_sdtp_class(x) == 5 || _sdtp_class(x) == 14)
#define _sdtp_size(x) sizeof(__typeof__(__builtin_choose_expr(_sdtp_pointer(x), (void *)0, (x))))
#define _sdtp_far(x) (!_sdtp_whole(_sdtp_size(x)))
#define _sdtp_number(x) ((_sdtp_class(x) <= 5 || _sdtp_class(x) == 14) && !_sdtp_far(x))
#define _sdtp_integer(x) __typeof__(__builtin_choose_expr(_sdtp_number(x) && !_sdtp_pointer(x), (x), 0U))
#define _sdtp_points(x) ((_sdtp_class(x) > 4 && _sdtp_class(x) != 8) || _sdtp_far(x))
#define _sdtp_int(x) ((int)(x))
#define _sdtp_told(x) ((unsigned)(_sdtp_far(x) ? sizeof(_sdtp_u1 *) : _sdtp_size(x)) | \
	((_sdtp_integer(x))-1 < (_sdtp_integer(x))1 ? 0x8000u : 0u))
#define _sdtp_load(s) ((int)*(const volatile unsigned short *)&(s))
#define _sdtp_other(x, otherwise) __builtin_choose_expr(_sdtp_number(x), otherwise, (x))
#define _sdtp_keep(n, x) __typeof__(_sdtp_other(x, 0)) _sdtp_k##n __attribute__((__unused__)) = _sdtp_other(x, 0);
#define _sdtp_sized(n, x, otherwise) __builtin_choose_expr(sizeof(x) == n, *(const _sdtp_u##n *)&x, otherwise)
#define _sdtp_bits(x) _sdtp_sized(1, x, _sdtp_sized(2, x, _sdtp_sized(4, x, *(const _sdtp_u8 *)&x)))
#define _sdtp_passed(n, x) __builtin_choose_expr(_sdtp_number(x), (x), \
	__builtin_choose_expr(_sdtp_far(x), (const volatile _sdtp_u1 *)&_sdtp_k##n, _sdtp_bits(_sdtp_k##n)))
#define _sdtp_type(x) __typeof__(((void)0, x))
#endif

/* Operands that every tracer reads: numbers and registers or, where there are few, variables on the stack. */
#if defined(__i386__) || defined(__arm__)
#ifdef __arm__
#define _sdtp_in "Q" /* a register leads to it, with nothing added */
#else
#define _sdtp_in "m"
#endif
#define _sdtp_let(n, x) _sdtp_keep(n, x) _sdtp_type(_sdtp_passed(n, x)) _sdtp_a##n = _sdtp_passed(n, x);
#define _sdtp_value(n, x) _sdtp_a##n
#else
#define _sdtp_in "nr"
#define _sdtp_let(n, x) _sdtp_keep(n, x)
#define _sdtp_value(n, x) _sdtp_passed(n, x)
#endif
#if defined(__powerpc__)
#define _sdtp_place(n) "%I[a" #n "]%[a" #n "]"
#elif defined(__x86_64__) /* gdb has another name than assemblers for the low byte of r8 */
#define _sdtp_place(n) "%q[a" #n "]"
#else
#define _sdtp_place(n) "%[a" #n "]"
#endif
/*
 * A tracer reads what pointers lead to: stores before such a probe are done there, and later ones are not. That costs loads
 * behind it, so probes with numbers alone do so with SDT_MEMORY only.
 */
#ifdef SDT_MEMORY
#define _sdtp_always 1
#else
#define _sdtp_always 0
#endif
#define _sdtp_memory : "memory"
#define _sdtp_registers
/* %n is the one form of a bare number that all compilers know on all machines: its negative. */
#define _sdtp_text(place) "\t.ascii \"@" place "\"\n"
#if defined(__arm__) && defined(__clang__) /* which writes numbers of registers that tracers know by names, and each address in one */
#define _sdtp_at(n) \
	"\t.ifc " _sdtp_place(n) ",[r11]\n" _sdtp_text("[fp]") "\t.else\n" \
	"\t.ifc " _sdtp_place(n) ",[r12]\n" _sdtp_text("[ip]") "\t.else\n" \
	_sdtp_text(_sdtp_place(n)) "\t.endif\n\t.endif\n"
#else
#define _sdtp_at(n) _sdtp_text(_sdtp_place(n))
#endif
#define _sdtp_op(n, x) [t##n] "n" (-_sdtp_int(_sdtp_told(x))), [a##n] _sdtp_in (_sdtp_value(n, x))
#define _sdtp_arg(n) \
	"\t.if %n[t" #n "]&0x8000\n\t.byte 45\n\t.endif\n" \
	"\t.byte 48+(%n[t" #n "]&15)\n" _sdtp_at(n)
#define _sdtp_next "\t.byte 32\n"

#ifdef __LP64__
#define _sdtp_word "\t.8byte "
#else
#define _sdtp_word "\t.4byte "
#endif
#if defined(__x86_64__) && defined(__LP64__) && !defined(SDT_SHORT_NOPS) /* Linux arms the second without a breakpoint */
#define _sdtp_nop "\t.byte 0x90,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n"
#elif defined(__x86_64__)
#define _sdtp_nop "\t.byte 0x90,0x0f,0x1f,0x40,0x00\n"
#elif defined(__i386__)
#define _sdtp_nop "\t.byte 0x90,0x8d,0x74,0x26,0x00\n"
#elif defined(__riscv)
#define _sdtp_nop "\t.option push\n\t.option norvc\n\tnop\n\tnop\n\t.option pop\n"
#elif defined(__s390x__)
#define _sdtp_nop "\tbrcl 0,.\n"
#elif defined(__thumb2__)
#define _sdtp_nop "\tnop.w\n"
#elif defined(__s390__) || defined(__ia64__)
#define _sdtp_nop "\tnop 0\n"
#else
#define _sdtp_nop "\tnop\n"
#endif
#if (!defined(__clang__) && __GNUC__ >= 9) || (defined(__clang__) && __clang_major__ >= 11)
#define _sdtp_asm __asm__ __volatile__ __inline
#else
#define _sdtp_asm __asm__ __volatile__
#endif

/* C90 has limits for strings. gcc knows that these are for the assembler. */
#ifdef __clang__
#define _sdtp_long _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Woverlength-strings\"")
#define _sdtp_long_end _Pragma("clang diagnostic pop")
#else
#define _sdtp_long
#define _sdtp_long_end
#endif

/* A semaphore is 16 bits that tracers count up, one of each name in a program or library, on a page of their own. */
#define _sdtp_piece(name, align, room, size, more) \
	"\t.ifndef " name "\n\t.pushsection .probes,\"awG\",\"progbits\"," name ",comdat\n\t.balign " align "\n" \
	"\t.weak " name "\n\t.hidden " name "\n\t.type " name ",STT_OBJECT\n\t.size " name "," size "\n" \
	name ":\n989:\t.zero " room "\n" more "\t.popsection\n\t.endif\n"
#define _sdtp_here(s) \
	_sdtp_piece("_.probes.base", "4096", "4", "4", "") \
	_sdtp_piece(s, "4", "4", "2", "\t.reloc 989b,BFD_RELOC_NONE,_.probes.base\n")
#define _sdtp_elsewhere(s) ""
#define _sdtp_enabled(where, s, name) \
	(__extension__ ({ _sdtp_long _sdtp_asm(where(name) : :); _sdtp_long_end __builtin_expect(_sdtp_load(s), 0); }))
#define _sdtp_hidden __attribute__((__visibility__("hidden")))
#define _sdtp_visible
#ifdef __cplusplus
#define _sdtp_declare(s, seen) extern "C" unsigned short s seen;
#else
#define _sdtp_declare(s, seen) extern unsigned short s seen;
#endif

/* The form of the note: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation */
#define _sdtp_begin(s, provider, name) \
	"990:" _sdtp_nop \
	"\t.reloc 990b,BFD_RELOC_NONE,_.stapsdt.base\n\t.reloc 990b,BFD_RELOC_NONE," s "\n" \
	"\t.pushsection .note.stapsdt,\"?\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n" \
	"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n" \
	"993:" _sdtp_word "990b\n" _sdtp_word "_.stapsdt.base\n" _sdtp_word s "\n" \
	"\t.asciz \"" provider "\"\n\t.asciz \"" name "\"\n"
#define _sdtp_end \
	"\t.byte 0\n994:\t.balign 4\n\t.popsection\n" \
	"\t.ifndef _.stapsdt.base\n\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	"\t.weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n_.stapsdt.base:\t.zero 1\n\t.size _.stapsdt.base,1\n" \
	"\t.popsection\n\t.endif\n"
#else /* no notes */
#define _sdtp_declare(s, seen)
#define _sdtp_enabled(where, s, name) (0)
#endif
/* NOLINTEND(bugprone-macro-parentheses) */
#endif
