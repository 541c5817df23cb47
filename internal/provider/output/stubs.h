#ifndef _sdtp_stubs
#define _sdtp_stubs 1
/* Other compilers, and systems without ELF, have no probes. Before version 15, clang defines __ELF__ for some systems only. */
#if defined(__GNUC__) && (defined(__ELF__) || (defined(__clang__) && __clang_major__ < 15)) && \
	!defined(__APPLE__) && !defined(_WIN32) && !defined(__CYGWIN__) && !defined(__UEFI__) && !defined(__wasm__) && !defined(_AIX) && !defined(SDT_DISABLE)
#ifdef __i386__ /* where -mrtd has other functions pop their arguments, which no NOP does */
#define _sdtp_convention __cdecl__,
#else
#define _sdtp_convention
#endif
/* An argument becomes a word, as a cast would make it. */
typedef __UINTPTR_TYPE__ _sdtp_word_type;
#ifdef __cplusplus
extern "C++" {
namespace _sdtp {
template <class T> inline __attribute__((__always_inline__)) _sdtp_word_type as_word(T value) { return static_cast<_sdtp_word_type>(value); }
template <class T> inline __attribute__((__always_inline__)) _sdtp_word_type as_word(T *value) { return reinterpret_cast<_sdtp_word_type>(value); }
void as_word(float);
void as_word(double);
void as_word(long double);
}
}
#define _sdtp_word_of(x) ::_sdtp::as_word(x)
#define _sdtp_stub(type, name, list) extern "C" type name list __attribute__((_sdtp_convention __nothrow__, __visibility__("hidden")));
#else
#define _sdtp_word_of(x) ((_sdtp_word_type)(x) + 0 * sizeof(int[__builtin_classify_type(x) == 8 ? -1 : 1]))
#define _sdtp_stub(type, name, list) extern type name list __attribute__((_sdtp_convention __nothrow__, __visibility__("hidden")));
#endif
#define _sdtp_fire(stub, words) stub words
#define _sdtp_test(stub) __builtin_expect(stub(), 0)
#define _sdtp_none ()
#else
#define _sdtp_word_of(x) (void)(x)
#define _sdtp_stub(type, name, list)
#define _sdtp_fire(stub, words) (1 ? (void)0 : words)
#define _sdtp_test(stub) (0)
#define _sdtp_none (void)0
#endif
#endif
