package header

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// strict are the warnings that the header does not cause.
var strict = []string{
	"-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-qual", "-Werror",
}

// compile compiles a source of testdata. A compiler is a command with flags that
// choose its target.
func compile(t *testing.T, compiler, source string, flags ...string) string {
	t.Helper()
	command := append(strings.Fields(compiler), flags...)
	command = append(command, "-I"+include, "-c", filepath.Join("testdata", source))
	return output(t, strings.TrimSuffix(source, filepath.Ext(source))+".o", command...)
}

var languages = []struct {
	of                        func(*toolchains.Machine, toolchains.Compiler) []string
	standards, sources, flags []string
}{
	{
		(*toolchains.Machine).CC,
		[]string{"c99", "c11", "c17", "c2x", "gnu17"},
		[]string{"c.c", "manpage.c", "show.c"},
		nil,
	},
	{
		(*toolchains.Machine).CXX,
		[]string{"c++11", "c++14", "c++17", "c++20", "c++2b"},
		[]string{"cxx.cc"},
		[]string{"-Wold-style-cast"},
	},
}

// compilers returns the commands of all compilers of a language: of the native machine,
// and gcc's of the others.
func compilers(of func(*toolchains.Machine, toolchains.Compiler) []string) []string {
	var all []string
	for _, c := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
		all = append(all, strings.Join(of(toolchains.AMD64, c), " "))
	}
	for _, m := range toolchains.Foreign() {
		all = append(all, strings.Join(of(m, toolchains.GCC), " "))
	}
	return all
}

// forms are the flags that choose how tracepoints and tests are compiled, and none.
var forms = []string{"", "-DSDT_CALLS", "-DSDT_NO_SEMAPHORES", "-DSDT_CALLS -DSDT_NO_SEMAPHORES"}

// picky are more warnings that no header causes, of all compilers, of gcc, of C++ and of g++.
var picky = map[string][]string{
	"":    {"-Wsign-conversion", "-Wundef", "-Wcast-align", "-Wfloat-equal", "-Wswitch-default", "-Wunreachable-code"},
	"gcc": {"-Wduplicated-branches", "-Wduplicated-cond", "-Wlogical-op"},
	"c++": {"-Wold-style-cast", "-Wextra-semi", "-Wzero-as-null-pointer-constant"},
	"g++": {"-Wuseless-cast"},
}

// TestWarnings compiles with every compiler in every standard and form, also with all probes disabled: the
// program without a warning, and macros of all headers with more warnings that projects make errors.
func TestWarnings(t *testing.T) {
	directory := t.TempDir()
	header := filepath.Join(directory, "warnings.h")
	tools.Must(t, converter, "provider", "-h", "-s", "testdata/warnings.d", "-o", header)
	for i, l := range languages {
		flags := slices.Concat(strict, picky[""], []string{"-I" + directory, "-x" + []string{"c", "c++"}[i]})
		if i == 1 {
			flags = append(flags, picky["c++"]...)
		}
		var rows [][]string
		for _, c := range compilers(l.of) {
			for _, std := range l.standards {
				for _, level := range []string{"-O0", "-O2"} {
					for _, form := range append(forms, "-DSDT_DISABLE", "-DSDT_MEMORY") {
						rows = append(rows, []string{c, std, level, form})
					}
				}
			}
		}
		for _, row := range product.New("compiler", "standard", "level", "form").Choose(t, rows) {
			t.Run(strings.Join(row, " "), func(t *testing.T) {
				t.Parallel()
				tools.Need(t, strings.Fields(row[0])[0])
				more := append([]string{"-std=" + row[1], row[2]}, strings.Fields(row[3])...)
				if !strings.Contains(row[0], "clang") {
					more = append(more, picky["gcc"]...)
					if i == 1 {
						more = append(more, picky["g++"]...)
					}
				}
				compile(t, row[0], "warnings.c", slices.Concat(flags, more)...)
				source := product.Some(strings.Join(row, " "), l.sources, 1)[0]
				compile(t, row[0], source, slices.Concat(strict, l.flags, []string{"-std=" + row[1], row[2]}, strings.Fields(row[3]))...)
			})
		}
	}
}

// TestUndeclared compiles in C++ what lacks a declaration. Compilers name the macro that is missing; a tracepoint that is
// a NOP and defines its probe needs none.
func TestUndeclared(t *testing.T) {
	for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
		tools.Need(t, cc.CXX)
		compile(t, cc.CXX, "undeclared.cc", "-DCASE=0")
		for _, c := range []struct{ name, source, form string }{
			{"DTRACE_PROBE_DECLARE", "0", "-DSDT_CALLS"},
			{"SDT_PROBE_DECLARE", "1", ""},
			{"SDT_PROBE_DECLARE", "1", "-DSDT_CALLS"},
			{"DTRACE_PROBE_DECLARE", "2", ""},
			{"DTRACE_PROBE_DECLARE", "2", "-DSDT_NO_SEMAPHORES"},
		} {
			args := append(strings.Fields(c.form), "-I"+include, "-DCASE="+c.source, "-fsyntax-only", "testdata/undeclared.cc")
			tools.Refuses(t, c.name, cc.CXX, args...)
		}
	}
}

// TestFormsAlone compiles the header for kernels before any other.
func TestFormsAlone(t *testing.T) {
	source := filepath.Join(t.TempDir(), "forms.c")
	disk.Write(t, source, "#include <sdt_forms.h>\nint main(void) { return sdt_form(sdt_forms[0].code, sdt_forms[0].test) != sdt_forms; }\n")
	for i, l := range languages {
		for _, c := range compilers(l.of) {
			tools.Need(t, strings.Fields(c)[0])
			flags := []string{"-x" + []string{"c", "c++"}[i], "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-I" + include, "-fsyntax-only", source}
			tools.Must(t, strings.Fields(c)[0], append(strings.Fields(c)[1:], flags...)...)
		}
	}
}

// TestC23 compiles what only C23 has.
func TestC23(t *testing.T) {
	tools.Need(t, toolchains.LLVM("clang"))
	for _, flag := range []string{"-DCASE=0", "-DCASE=4"} {
		compile(t, toolchains.LLVM("clang"), "refused.c", append([]string{"-std=c23", flag}, strict...)...)
	}
}

// TestAssemblers assembles tracepoints and the definitions of DTRACE_PROBE in another
// syntax, by the other assembler, and for small words.
func TestAssemblers(t *testing.T) {
	for _, c := range []string{
		"gcc -masm=intel", toolchains.OldLLVM("clang") + " -masm=intel", toolchains.LLVM("clang") + " -masm=intel", toolchains.LLVM("clang") + " -fno-integrated-as",
		toolchains.OldLLVM("clang") + " --target=riscv64-linux-gnu -ffreestanding", toolchains.LLVM("clang") + " --target=aarch64-linux-gnu -ffreestanding",
		toolchains.OldLLVM("clang") + " --target=aarch64-linux-gnu", toolchains.LLVM("clang") + " --target=aarch64_be-linux-gnu", toolchains.OldLLVM("clang") + " --target=s390x-linux-gnu", toolchains.LLVM("clang") + " -mx32",
		toolchains.LLVM("clang") + " --target=loongarch64-linux-gnu", toolchains.LLVM("clang") + " --target=powerpc64le-linux-gnu -ffreestanding", toolchains.LLVM("clang") + " -m32 -ffreestanding", toolchains.LLVM("clang") + " -m32",
	} {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, strings.Fields(c)[0])
			for _, form := range product.Some(c, forms, 2) {
				compile(t, c, "c.c", append(strings.Fields(form), "-O2", "-Wall", "-Werror")...)
			}
		})
	}
}

// TestRefusedArguments compiles arguments that do not fit into a word. The first
// case is one that does.
func TestRefusedArguments(t *testing.T) {
	for _, c := range []string{"gcc -std=c99", toolchains.LLVM("clang") + " -std=c99", "g++ -xc++", toolchains.OldLLVM("clang++") + " -xc++ -std=c++11", toolchains.LLVM("clang++") + " -xc++"} {
		tools.Need(t, strings.Fields(c)[0])
		for _, form := range []string{"-USDT_CALLS", "-DSDT_CALLS"} {
			compile(t, c, "refused.c", "-DCASE=0", form)
			for i := 1; i <= 3; i++ {
				args := append(strings.Fields(c), "-I"+include, form, fmt.Sprint("-DCASE=", i), "-fsyntax-only", "testdata/refused.c")
				out, err := tools.Try(args[0], args[1:]...)
				if err == nil {
					t.Errorf("%s %s: case %d is not refused", c, form, i)
				}
				if !strings.Contains(out, "integer") && !strings.Contains(out, "arithmetic or pointer") {
					t.Errorf("%s %s: case %d: the error does not say what is allowed:\n%s", c, form, i, out)
				}
			}
		}
	}
}

// TestDisabled looks for what is left of a disabled program.
func TestDisabled(t *testing.T) {
	tools.Need(t, "gcc", "g++", toolchains.LLVM("clang"), toolchains.LLVM("clang++"), "nm")
	for _, c := range [][2]string{{"gcc", "g++"}, {toolchains.LLVM("clang"), toolchains.LLVM("clang++")}} {
		for _, o := range []string{"-O0", "-O2"} {
			for i, source := range []string{"c.c", "cxx.cc"} {
				object := compile(t, c[i], source, "-DSDT_DISABLE", o)
				if out := tools.Must(t, "nm", object); strings.Contains(out, "sdt") || strings.Contains(out, "dtrace") {
					t.Errorf("%s %s %s leaves\n%s", c[i], o, source, out)
				}
			}
		}
	}
}

var (
	files     shared.Files // what the tests make
	converter string
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestLink|TestSemaphores$|TestRandomMemory$`, &converter, func(directory string) error {
		files.Directory = directory
		return nil
	})
}

// output appends `-o <a file>` to a command and runs it, once for all tests. The
// file is called base.
func output(t *testing.T, base string, command ...string) string {
	t.Helper()
	return expect.Value(files.Run(base, command[0], command[1:]...))(t)
}

// sortedLines returns the lines of a text that are not empty.
func sortedLines(text string) []string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// checkLines compares lines in any order.
func checkLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	expect.Equal(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)), "%s", what)
}

var docProgram = regexp.MustCompile("(?s)```c\n(/\\* (\\w+\\.c) \\*/\n.*?)```")

// docSource writes the program of a page of docs/ to a file: the block of C that
// begins with the file's name.
func docSource(t *testing.T, page string) string {
	t.Helper()
	text := disk.Read(t, tools.Root("docs", page))
	match := docProgram.FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s holds no program", page)
	}
	path := filepath.Join(t.TempDir(), string(match[2]))
	disk.Write(t, path, match[1])
	return path
}

// TestDocs compiles the program with a probe that docs/first-steps.md shows, and the one of docs/reading.md, which
// sees its own probe fire.
func TestDocs(t *testing.T) {
	tools.Need(t, "gcc")
	gcc := append([]string{"gcc", "-std=c99", "-O2", "-I" + include, "-c"}, strict...)
	count, reader := docSource(t, "first-steps.md"), docSource(t, "reading.md")
	output(t, "count", "gcc", convert(t, output(t, "count.o", append(gcc, count)...)))
	exe := output(t, "reader", "gcc", convert(t, output(t, "reader.o", append(gcc, reader)...)))
	expect.Equal(t, "begin in main: 1", strings.TrimSpace(tools.Must(t, exe)))
}

// withoutProbes are targets that have no ELF, or a machine that sdtconvert does not know. Headers of
// provider files know all machines.
var withoutProbes = []string{
	"x86_64-apple-macos11 -stdlib=libc++", "arm64-apple-macos11 -stdlib=libc++", "arm64-apple-ios -stdlib=libc++",
	"x86_64-w64-windows-gnu", "i686-w64-windows-gnu", "x86_64-pc-windows-cygnus", "wasm32-unknown-unknown", "wasm32-wasip1",
	"x86_64-pc-windows-msvc -ffreestanding", "aarch64-pc-windows-msvc -ffreestanding", "mips64-linux-gnu -DALONE", "riscv32-linux-gnu -DALONE",
}

// withProbes are targets whose objects have probes.
var withProbes = []string{
	"x86_64-unknown-freebsd", "aarch64-unknown-freebsd", "x86_64-unknown-openbsd", "aarch64-unknown-netbsd", "x86_64-pc-solaris2.11",
	"x86_64-linux-musl", "aarch64-linux-android", "armv7-linux-androideabi -mfpu=neon", "x86_64-unknown-none",
}

// systemHeaders makes the headers of provider files that systems.c includes.
func systemHeaders(t *testing.T) (directory string) {
	t.Helper()
	directory = t.TempDir()
	tools.Must(t, converter, "provider", "-h", "-s", "testdata/systems.d", "-o", filepath.Join(directory, "systems.h"))
	tools.Must(t, converter, "provider", "-h", "-x", "stubs", "-s", "testdata/systemsstubs.d", "-o", filepath.Join(directory, "systemsstubs.h"))
	return directory
}

// TestSystems compiles each macro of each header for systems with and without ELF.
func TestSystems(t *testing.T) {
	headers := systemHeaders(t)
	for clang, targets := range map[string][]string{
		toolchains.LLVM("clang"):    slices.Concat(withoutProbes, withProbes),
		toolchains.OldLLVM("clang"): product.Some("systems", slices.Concat(withoutProbes, withProbes), 4),
	} {
		for _, target := range targets {
			t.Run(clang+" "+target, func(t *testing.T) {
				t.Parallel()
				tools.Need(t, clang, toolchains.LLVM("llvm-nm"))
				for _, language := range []string{"c", "c++"} {
					object := compileSystem(t, clang, "--target="+target, language, headers)
					checkSystem(t, object, slices.Contains(withProbes, target))
				}
			})
		}
	}
}

// compileSystem compiles systems.c without optimisation, and sees to it that arguments are checked. Flags are separated by blanks.
func compileSystem(t *testing.T, compiler, flags, language, headers string) (object string) {
	t.Helper()
	command := slices.Concat([]string{compiler}, strings.Fields(flags),
		[]string{"-x", language, "-O0", "-Wall", "-Wextra", "-Wundef", "-Werror", "-Wno-unused-command-line-argument", "-I" + include, "-I" + headers, "-c", "testdata/systems.c"})
	object = output(t, "systems.o", command...)
	tools.Refuses(t, "undeclared", command[0], append(command[1:], "-DMISTYPED", "-fsyntax-only")...)
	return object
}

// checkSystem looks for what probes and their arguments leave in an object.
func checkSystem(t *testing.T, object string, probes bool) {
	t.Helper()
	symbols := tools.Must(t, toolchains.LLVM("llvm-nm"), object)
	for _, left := range []string{"dtrace", "sdt_", "evaluated"} {
		if strings.Contains(symbols, left) != probes {
			t.Errorf("%s in the symbols is not %v:\n%s", left, probes, symbols)
		}
	}
	if len(strings.Fields(symbols)) < 6 {
		t.Errorf("too few symbols: %s", symbols)
	}
}

// TestMinGW compiles for Windows with gcc.
func TestMinGW(t *testing.T) {
	headers := systemHeaders(t)
	gcc := "x86_64-w64-mingw32-gcc"
	tools.Need(t, gcc)
	checkSystem(t, compileSystem(t, gcc, "", "c", headers), false)
}

// TestOldC compiles what comments and declarations of C99 would break.
func TestOldC(t *testing.T) {
	headers := systemHeaders(t)
	for _, compiler := range []string{"gcc", toolchains.OldLLVM("clang")} {
		tools.Need(t, compiler)
		checkSystem(t, compileSystem(t, compiler, "-std=gnu89 -Wdeclaration-after-statement -Wnested-externs", "c", headers), true)
	}
}

// TestKernelMacros compiles as Linux' kernel does, whose macros of these names add attributes.
func TestKernelMacros(t *testing.T) {
	tools.Need(t, "gcc")
	checkSystem(t, compileSystem(t, "gcc", "-D__KERNEL__ -ffreestanding -D__inline__=@", "c", systemHeaders(t)), true)
}

// TestOtherCompilers compiles with what compilers have that know nothing of GNU's extensions, as Microsoft's: no
// attributes, no macros of types, and stdint.h from elsewhere.
func TestOtherCompilers(t *testing.T) {
	clang := toolchains.LLVM("clang")
	tools.Need(t, clang)
	headers := systemHeaders(t)
	disk.Write(t, filepath.Join(headers, "stdint.h"), "typedef unsigned long long uintptr_t;\n")
	flags := []string{"--target=x86_64-pc-windows-msvc", "-fms-compatibility", "-fgnuc-version=0", "-nostdinc"}
	for _, extension := range []string{"__attribute__(x)", "__extension__", "__typeof__", "__typeof", "__asm__", "asm", "__inline__", "__builtin_expect",
		"__builtin_classify_type", "__builtin_choose_expr", "_Generic", "__auto_type"} {
		flags = append(flags, "-D"+extension+"=@")
	}
	for _, macro := range []string{"__UINTPTR_TYPE__", "__SIZE_TYPE__", "__SIZEOF_POINTER__", "__SIZEOF_INT128__"} {
		flags = append(flags, "-U"+macro)
	}
	for language, standard := range map[string]string{"c": "c99", "c++": "c++14"} {
		checkSystem(t, compileSystem(t, clang, strings.Join(append(flags, "-std="+standard), " "), language, headers), false)
	}
}

// TestClangCL compiles with clang's driver for the command lines of Microsoft's compiler.
func TestClangCL(t *testing.T) {
	clang := toolchains.LLVM("clang")
	tools.Need(t, clang)
	headers := systemHeaders(t)
	for _, language := range []string{"/TC", "/TP"} {
		object := filepath.Join(t.TempDir(), "systems.obj")
		tools.Must(t, clang, "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "/nologo", "/c", "/W4", "/WX", language, "/I", include, "/I", headers,
			"/Fo"+object, "testdata/systems.c")
		checkSystem(t, object, false)
	}
}

// TestClangTidy looks for what clang-tidy says of macros, in the headers and where they are used.
func TestClangTidy(t *testing.T) {
	tidy := toolchains.LLVM("clang-tidy")
	tools.Need(t, tidy)
	headers := systemHeaders(t)
	for _, language := range []string{"c", "c++"} {
		arguments := []string{"--quiet", "--checks=-*,bugprone-macro-parentheses,performance-no-int-to-ptr", "--warnings-as-errors=*", "--header-filter=.*",
			"testdata/systems.c", "--", "-x", language, "-I" + include, "-I" + headers}
		tools.Must(t, tidy, arguments...)
		tools.Refuses(t, "undeclared", tidy, append(arguments, "-DMISTYPED")...)
	}
}

// TestMusl links a program with another C library, unconverted and converted.
func TestMusl(t *testing.T) {
	tools.Need(t, "musl-gcc", "readelf")
	directory := t.TempDir()
	source, object, exe := filepath.Join(directory, "m.c"), filepath.Join(directory, "m.o"), filepath.Join(directory, "m")
	disk.Write(t, source, "#include <sdt.h>\nint main(int c, char **v)\n{\n\tif (DTRACE_PROBE_ENABLED(musl___many))\n\t\treturn 1;\n"+
		"\tDTRACE_PROBE5(musl___many, int, c, int, c + 1, char *, v[0], int, 4, long, 5L);\n\treturn 0;\n}\n")
	tools.Must(t, "musl-gcc", "-O2", "-static", "-I"+include, "-o", exe, source)
	tools.Must(t, exe)
	tools.Must(t, "musl-gcc", "-O2", "-c", "-I"+include, "-o", object, source)
	tools.Must(t, converter, object)
	tools.Must(t, "musl-gcc", "-static", "-o", exe, object)
	tools.Must(t, exe)
	if notes := tools.Must(t, "readelf", "-nW", exe); !strings.Contains(notes, "Name: many") {
		t.Errorf("no note:\n%s", notes)
	}
}
