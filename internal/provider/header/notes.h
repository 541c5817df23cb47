#ifndef _sdtp_notes
#define _sdtp_notes 1
#if defined(__FreeBSD__) || defined(__sun)
#error "this header has probes of Linux: make it for the system, with --target"
#endif
#if defined(__ELF__) && defined(__GNUC__)
/* An argument is told as its size, negative if it is signed, 0x4000 more for a floating-point number, and a place. */
#ifdef __cplusplus
extern "C++" {
namespace _sdtp {
template <class T, bool Enum = __is_enum(T)> struct type { enum { told = sizeof(T) }; };
template <class T> struct type<T, true> : type<__underlying_type(T)> {};
#define _sdtp_char char /* scripts look for one behind a parenthesis */
#define _sdtp_signed(t) template <> struct type<t, false> { enum { told = sizeof(t) | 0x8000 }; };
#define _sdtp_float(t) template <> struct type<t, false> { enum { told = sizeof(t) | 0x4000 }; };
_sdtp_signed(signed char) _sdtp_signed(short) _sdtp_signed(int) _sdtp_signed(long) __extension__ _sdtp_signed(long long)
#ifndef __CHAR_UNSIGNED__
_sdtp_signed(_sdtp_char)
#endif
#ifndef __WCHAR_UNSIGNED__
_sdtp_signed(wchar_t)
#endif
_sdtp_float(float) _sdtp_float(double) _sdtp_float(long double)
#ifdef __SIZEOF_INT128__
__extension__ _sdtp_signed(__int128)
#endif
#undef _sdtp_char
#undef _sdtp_signed
#undef _sdtp_float
template <class T> char (&tell(T))[type<T>::told];
template <class T> struct points { enum { value = __is_class(T) || __is_union(T) }; };
template <class T> struct points<T *> { enum { value = 1 }; };
template <class T> char (&reach(T))[1 + points<T>::value];
}
}
#define _sdtp_told(x) sizeof(::_sdtp::tell(x))
#define _sdtp_int(x) static_cast<int>(x)
#define _sdtp_points(x) (sizeof(::_sdtp::reach(x)) > 1)
#define _sdtp_load(s) static_cast<int>(static_cast<const volatile unsigned short &>(s))
#else
#define _sdtp_class(x) __builtin_classify_type(x)
#define _sdtp_integer(x) __typeof__(__builtin_choose_expr(_sdtp_class(x) >= 1 && _sdtp_class(x) <= 4, (x), 0U))
#define _sdtp_sized(x) __typeof__(__builtin_choose_expr(_sdtp_class(x) == 5 || _sdtp_class(x) == 14, (void *)0, (x)))
#define _sdtp_points(x) (_sdtp_class(x) > 4 && _sdtp_class(x) != 8)
#define _sdtp_int(x) ((int)(x))
#define _sdtp_told(x) ((unsigned)sizeof(_sdtp_sized(x)) | (_sdtp_class(x) == 8 ? 0x4000u : 0u) | \
	((_sdtp_integer(x))-1 < (_sdtp_integer(x))1 ? 0x8000u : 0u))
#define _sdtp_load(s) ((int)*(const volatile unsigned short *)&(s))
#endif

#if defined(__powerpc__)
#define _sdtp_in "nZr"
#define _sdtp_place(n) "%I[a" #n "]%[a" #n "]"
#elif defined(__arm__)
#define _sdtp_in "g"
#define _sdtp_place(n) "%[a" #n "]"
#elif defined(__loongarch__) && defined(__clang__) /* which crashes over others, to version 23 at least */
#define _sdtp_in "nr"
#define _sdtp_place(n) "%[a" #n "]"
#elif defined(__i386__)
#define _sdtp_in "nor"
#define _sdtp_place(n) "%k[a" #n "]"
#elif defined(__x86_64__) /* gdb has another name than assemblers for the low byte of r8 */
#define _sdtp_in "nor"
#define _sdtp_place(n) "%q[a" #n "]"
#else
#define _sdtp_in "nor"
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
#define _sdtp_op(n, x) [t##n] "n" (-_sdtp_int(_sdtp_told(x))), [a##n] _sdtp_in (x)
#define _sdtp_digit(n, d) "\t.if (%n[t" #n "]&0x3fff)>=" #d "\n\t.byte 48+(%n[t" #n "]&0x3fff)/" #d "%%10\n\t.endif\n"
#define _sdtp_arg(n) \
	"\t.if %n[t" #n "]&0x8000\n\t.byte 45\n\t.endif\n" \
	_sdtp_digit(n, 1000) _sdtp_digit(n, 100) _sdtp_digit(n, 10) _sdtp_digit(n, 1) \
	"\t.if %n[t" #n "]&0x4000\n\t.byte 102\n\t.endif\n" \
	"\t.ascii \"@" _sdtp_place(n) "\"\n"
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
#define _sdtp_asm __asm__ __volatile__ __inline__
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
#endif
