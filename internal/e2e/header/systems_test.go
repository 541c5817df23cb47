package header

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

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
