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

// What test suites of other programs that make headers and objects of provider files expect,
// as far as it is about building: each test has the name that it has there.

// A source that only tests whether a probe is traced, without the object and with it.
func TestOnlyenabled(t *testing.T) {
	b := newBuild(t)
	exe := b.program(t, "provider test_prov { probe go(int); };\n", "int main(void) { return TEST_PROV_GO_ENABLED() ? 2 : 0; }\n")
	b.Must(t, exe)
	expect.Equal(t, nil, forms(t, exe), "notes of no probe")
	b.Must(t, "gcc", "main.o", "-o", "alone")
	b.Must(t, "./alone")
}

// Several providers in a file; one provider in several files, each with a header and an
// object; and probes that nothing fires.
func TestMultiprov(t *testing.T) {
	b := newBuild(t)
	b.write(t, "two.d", "provider a { probe x(); probe dead(); }; provider b { probe x(int); };\n")
	b.write(t, "more.d", "provider a { probe y(int); };\n")
	b.write(t, "test.c", `#include "two.h"
#include "more.h"
int main(int n, char **v) { A_X(); B_X(n); A_Y(n); return A_X_ENABLED() + B_X_ENABLED() + A_Y_ENABLED() + A_DEAD_ENABLED(); }
`)
	for _, name := range []string{"two", "more"} {
		b.Must(t, b.dtrace, "-h", "-s", name+".d")
		b.Must(t, b.dtrace, "-G", "-s", name+".d")
	}
	b.Must(t, "gcc", "-Wall", "-Werror", "test.c", "two.o", "more.o", "-o", "test")
	b.Must(t, "./test")
	b.Must(t, converter, "check", "--require", "a:::x", "--require", "b:::x", "--require", "a::main:y", "test")
	b.Refuses(t, "[missing-probe]", converter, "check", "--require", "a:::dead", "test")
	expect.Equal(t, []string{"a x", "a y -4@", "b x -4@"}, forms(t, filepath.Join(b.Directory, "test")))
}

// What test suites of others expect of probes that are traced.

// peer is a program with the probes of a file, and what tracing it shows.
type peer struct {
	name, probes, source string
	flags                []string // of the compiler
	untraced, traced     string   // what it prints
	counts               string   // of its probes
}

// The source of each begins with the header, and prints through printf.
var peers = []peer{
	{"pie", "probe probe1(); probe probe2();", `
static __attribute__((noinline)) void local(void) { P_PROBE2(); }
int main(void) { P_PROBE1(); local(); return 0; }`,
		[]string{"-fPIE", "-pie"}, "", "", "probe1 1 probe2 1"},
	{"enabled", "probe go(); probe other();", `
int main(void) { if (P_GO_ENABLED()) { printf("taken\n"); P_GO(); } return 0; }`,
		nil, "", "taken\n", "go 1"},
	{"enabled2", "probe go(int, int, int);", `
static __attribute__((noinline)) int same(int a, int b, int c) { P_GO_ENABLED(); if (P_GO_ENABLED()) P_GO(a, b, c); return printf("%d %d %d\n", a, b, c); }
int main(int n, char **v) { return same(23 + n, 23 + n, 23 + n) != 9; }`,
		nil, "24 24 24\n", "24 24 24\n", "go 1"},
	{"tailcall", "probe foo(int); probe bar(int);", `
static __attribute__((noinline)) int bar(int n) { P_BAR(n); return 2 * n; }
static __attribute__((noinline)) int foo(int n) { P_FOO(n); return bar(n + 1); }
static __attribute__((noinline)) void last(int n) { P_FOO(n); }
int main(int n, char **v) { last(n); printf("%d\n", foo(n)); return 0; }`,
		nil, "4\n", "4\n", "bar 1 foo 2"},
	{"enable", "probe go(); probe stop();", `
static int and(int x) { return P_GO_ENABLED() && x; }
static int and2(int x) { return x && P_GO_ENABLED(); }
static int or(int x) { return P_GO_ENABLED() || x; }
static int or2(int x) { return x || P_GO_ENABLED(); }
static int returned(void) { return P_GO_ENABLED(); }
static int both(void) { return P_GO_ENABLED() && !P_STOP_ENABLED(); }
int main(void)
{
	P_GO_ENABLED();
	P_GO();
	printf("%d%d %d%d %d%d %d%d %d %d %d\n", and(0), and(1), and2(0), and2(1), or(0), or(1), or2(0), or2(1), !!returned(), both(), P_GO_ENABLED() ? 5 : 6);
	return 0;
}`,
		nil, "00 00 01 01 0 0 6\n", "01 01 11 11 1 1 5\n", "go 1"},
}

// make makes the program of a peer in a directory, with the object of its provider.
func (p *peer) make(t *testing.T, b build) (exe string) {
	t.Helper()
	return b.program(t, "provider p { "+p.probes+" };\n", "#include <stdio.h>\n"+p.source+"\n", p.flags...)
}

// countEach returns a script of bpftrace that counts the probes of a file by their names.
func countEach(exe string, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "usdt:%s:p:%s { @%s = count(); } ", exe, name, name)
	}
	return b.String()
}

// counts reads what bpftrace prints of counters: their names and values.
func counts(out string) string {
	var all []string
	for line := range strings.Lines(out) {
		if name, n, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasPrefix(name, "@") {
			all = append(all, name[1:], n)
		}
	}
	return strings.Join(all, " ")
}

func TestPeers(t *testing.T) {
	tools.NeedUprobes(t)
	for i := range peers {
		p := &peers[i]
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			exe := p.make(t, newBuild(t))
			expect.Equal(t, p.untraced, tools.Output(t, exe), "untraced it prints")
			var names []string
			for i, word := range strings.Fields(p.counts) {
				if i%2 == 0 {
					names = append(names, word)
				}
			}
			out := tools.Must(t, "bpftrace", "-e", countEach(exe, names...), "-c", exe)
			if got := counts(out); got != p.counts || !strings.Contains(out, p.traced) {
				t.Errorf("got %q, want %q and %q: %s", got, p.counts, p.traced, out)
			}
		})
	}
}

// Values as gdb reads them from registers, the stack and code, whatever their number.
func TestAllargs(t *testing.T) {
	tools.Need(t, "gdb")
	p := peer{probes: "probe place(int i, int j, int, int, int, int, int, int, int, int); probe most(int, int, int, int, int, int, int, int, int, int, int, int); probe none();",
		source: `
static __attribute__((noinline)) void all(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
	P_PLACE(a, b, c, d, e, f, g, h, i, j);
	P_MOST(a, b, c, d, e, f, g, h, i, j, 100, a + b);
	P_NONE();
}
int main(int n, char **v) { all(9 + n, 3 + n, 20, 30, 40, 50, 60, 70, 80, 90); return 0; }`}
	exe := p.make(t, newBuild(t))
	var commands strings.Builder
	for _, probe := range []struct {
		name string
		args int
	}{{"place", 10}, {"most", 12}, {"none", 0}} {
		fmt.Fprintf(&commands, "break -probe-stap p:%s\ncommands\nsilent\nprintf \"> %s %%d\", $_probe_argc\n", probe.name, probe.name)
		for i := range probe.args {
			fmt.Fprintf(&commands, "printf \" %%d\", $_probe_arg%d\n", i)
		}
		commands.WriteString("printf \"\\n\"\ncontinue\nend\n")
	}
	var got []string
	for line := range strings.Lines(tools.GDB(t, "gdb", exe, commands.String()+"run\n")) {
		if text, ok := strings.CutPrefix(line, "> "); ok {
			got = append(got, strings.TrimSpace(text))
		}
	}
	want := []string{"place 10 10 4 20 30 40 50 60 70 80 90", "most 12 10 4 20 30 40 50 60 70 80 90 100 14", "none 0"}
	expect.Equal(t, want, got)
}

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
