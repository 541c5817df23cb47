package providers

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// Types of arguments, in C and C++: each that the language has, and those of headers.
const (
	everyType = "char; signed char; unsigned char; short; unsigned short; int; unsigned; long; unsigned long; long long; unsigned long long;" +
		" int8_t; uint8_t; int16_t; uint16_t; int32_t; uint32_t; int64_t; uint64_t; intptr_t; uintptr_t; intmax_t; uintmax_t; int_fast16_t; uint_least8_t;" +
		" size_t; ssize_t; ptrdiff_t; wchar_t; ushort; uint; ulong; u_char; u_short; u_int; u_long; u_int8_t; u_int16_t; u_int32_t; u_int64_t;" +
		" off_t; time_t; pid_t; uid_t; gid_t; mode_t; dev_t; ino_t; quad_t; register_t; __u8; __s16; __u32; __s64;" +
		" enum positive; enum negative; void *; const char *; struct incomplete *; function *; const short; volatile unsigned char"
	cType   = "_Bool"
	cxxType = "bool; char16_t; char32_t; enum small; scoped; wide; std::nullptr_t; structure::member"
)

// opaqueTypes have names that notes do not know: only debug information says their sizes.
var opaqueTypes = []string{
	"int_fast16_t", "uint_least8_t", "wchar_t", "mode_t", "dev_t", "ino_t", "quad_t",
	"char16_t", "char32_t", "scoped", "wide", "std::nullptr_t", "structure::member",
}

const typeHeaders = `#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/types.h>
enum positive { one = 1 };
enum negative { minus = -1 };
typedef void function(int);
struct incomplete;
#ifdef __cplusplus
#include <cstddef>
enum small : unsigned short { none };
enum class scoped : signed char { none };
enum class wide : unsigned long { none };
struct structure { typedef short member; };
#define CHECK static_assert
#define C extern "C"
#include <type_traits>
template <class T, bool = std::is_enum<T>::value> struct number : std::is_signed<T> {};
template <class T> struct number<T, true> : std::is_signed<typename std::underlying_type<T>::type> {};
#define SIGNED(T) number<std::remove_cv<T>::type>::value
#else
#define CHECK _Static_assert
#define C
#define NUMBER(T) __typeof__(__builtin_choose_expr(__builtin_classify_type(*(T *)0) == 5, 0U, *(T *)0))
#define SIGNED(T) ((NUMBER(T))-1 < (NUMBER(T))1)
#endif
`

// TestTypesOfArguments has each type of the language in the notes of a provider's header, and in those
// that a conversion makes of a stub's debug information, and of the name of the type, with the size and
// the sign that the compiler says.
func TestTypesOfArguments(t *testing.T) {
	for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
		for _, language := range []string{"c", "cc"} {
			t.Run(cc.Name+" "+language, func(t *testing.T) {
				t.Parallel()
				types, command := strings.Split(everyType, "; "), toolchains.AMD64.CC(cc)
				if language == "c" {
					types = append(types, cType)
				} else {
					types, command = append(types, strings.Split(cxxType, "; ")...), append(toolchains.AMD64.CXX(cc), "-std=c++17")
				}
				tools.Need(t, command[0], "readelf")
				b := typesBuild{t, append(command, "-O1", "-g", "-w"), language, t.TempDir(), types}
				b.check(b.sizes(b.notesOfHeader()))
				if cc != toolchains.OldClang { // whose debug information has no function that is only called
					b.check(b.sizes(b.notesOfStubs()))
				}
				b.types = slices.DeleteFunc(types, func(name string) bool { // an enumeration's name does not say its size
					return strings.HasPrefix(name, "enum") || slices.Contains(opaqueTypes, name)
				})
				b.check(b.names())
			})
		}
	}
}

// typesBuild compiles a source for some types, in a directory.
type typesBuild struct {
	*testing.T
	compiler  []string
	language  string
	directory string
	types     []string
}

func (b *typesBuild) compile(name, source string) string {
	b.Helper()
	path, object := filepath.Join(b.directory, name+"."+b.language), filepath.Join(b.directory, name+".o")
	disk.Write(b, path, typeHeaders+source)
	tools.Must(b, b.compiler[0], slices.Concat(b.compiler[1:], []string{"-I" + b.directory, "-c", "-o", object, path})...)
	return object
}

func (b *typesBuild) notesOfHeader() string {
	var provider, source strings.Builder
	fmt.Fprintln(&provider, "provider app {")
	fmt.Fprintln(&source, `#include "app.h"`)
	for i, name := range b.types {
		fmt.Fprintf(&provider, "probe p%03d(long);\n", i)
		fmt.Fprintf(&source, "typedef %s type%d; void call%d(type%d v) { APP_P%03d(v); }\n", name, i, i, i, i)
	}
	fmt.Fprintln(&provider, "};")
	disk.Write(b, filepath.Join(b.directory, "app.d"), provider.String())
	tools.Must(b, converter, "provider", "-h", "-s", filepath.Join(b.directory, "app.d"), "-o", filepath.Join(b.directory, "app.h"))
	return b.compile("header", source.String())
}

func (b *typesBuild) notesOfStubs() string {
	var source strings.Builder
	for i, name := range b.types {
		fmt.Fprintf(&source, "typedef %s type%d; C void __dtrace_probe_app___p%03d(type%d); void call%d(type%d v) { __dtrace_probe_app___p%03d(v); }\n", name, i, i, i, i, i, i)
	}
	object := b.compile("stubs", source.String())
	tools.Must(b, converter, "--stapsdt", object)
	return object
}

// names returns what names of types stand for.
func (b *typesBuild) names() (sizes []string) {
	m := machines.Lookup(elfreloc.ABI{Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB})
	for _, name := range b.types {
		sizes = append(sizes, notes.Operands(m, arch.Call, elf.ELFDATA2LSB, []notes.ArgType{notes.NativeType(name, m)}))
	}
	return sizes
}

// sizes returns what the notes of an object say of their argument.
func (b *typesBuild) sizes(object string) (sizes []string) {
	for _, note := range forms(b, object) {
		sizes = append(sizes, strings.Fields(note)[2])
	}
	return sizes
}

// check has the compiler say whether sizes are true.
func (b *typesBuild) check(sizes []string) {
	b.Helper()
	var claims strings.Builder
	expect.Equal(b, len(b.types), len(sizes))
	for i, size := range sizes {
		size, _, _ = strings.Cut(size, "@")
		magnitude, signed := strings.CutPrefix(size, "-")
		fmt.Fprintf(&claims, "typedef %s type%d; CHECK(sizeof(type%d) == %s && SIGNED(type%d) == %t, \"%s is not %s\");\n",
			b.types[i], i, i, magnitude, i, signed, b.types[i], size)
	}
	b.compile("claims", "#include <stdbool.h>\n"+claims.String())
}
