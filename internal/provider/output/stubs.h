#ifndef _sdtp_stubs
#define _sdtp_stubs 1
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
template <class T> inline __attribute__((__always_inline__)) _sdtp_word_type word(T value) { return static_cast<_sdtp_word_type>(value); }
template <class T> inline __attribute__((__always_inline__)) _sdtp_word_type word(T *value) { return reinterpret_cast<_sdtp_word_type>(value); }
void word(float);
void word(double);
void word(long double);
}
}
#define _sdtp_word_of(x) ::_sdtp::word(x)
#define _sdtp_stub(type, name, list) extern "C" type name list __attribute__((_sdtp_convention __nothrow__, __visibility__("hidden")));
#else
#define _sdtp_word_of(x) ((_sdtp_word_type)(x) + 0 * sizeof(int[__builtin_classify_type(x) == 8 ? -1 : 1]))
#define _sdtp_stub(type, name, list) extern type name list __attribute__((_sdtp_convention __nothrow__, __visibility__("hidden")));
#endif
#endif
