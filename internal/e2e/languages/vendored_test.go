package languages

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// TestVendored builds programs with the macros of include/rust, include/sdt.d and include/sdt.zig, with nothing of sdtconvert but these
// files: tracers find the notes, and guards see the semaphores. A link through sdtconvert changes nothing of that.
func TestVendored(t *testing.T) {
	const (
		rust    = "rustc --edition 2021 -o OUT testdata/shop.rs"
		gdc     = "gdc -O2 -o OUT testdata/shop.d ../../../include/sdt.d"
		ldc     = "ldc2 -O2 -of=OUT testdata/shop.d ../../../include/sdt.d"
		sources = " -lc -fllvm --dep sdt -Mroot=testdata/shop.zig -Msdt=../../../include/sdt.zig"
	)
	for name, c := range map[string]struct{ build, linked string }{
		"rust":           {rust, rust + " -C link-arg=-BLINKERS"},
		"rust optimised": {rust + " -O", rust + " -O -C link-arg=-BLINKERS"},
		"gdc":            {gdc, gdc + " -BLINKERS"},
		"ldc":            {ldc, ldc + " -Xcc=-BLINKERS"},
		"zig":            {"zig build-exe -femit-bin=OUT" + sources, "zig build-obj -fcompiler-rt -femit-bin=OUT.o" + sources + "; cc -BLINKERS -o OUT OUT.o"},
		"zig optimised":  {"zig build-exe -O ReleaseFast -femit-bin=OUT" + sources, "zig build-obj -O ReleaseFast -fcompiler-rt -femit-bin=OUT.o" + sources + "; cc -BLINKERS -o OUT OUT.o"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiler, _, _ := strings.Cut(c.build, " ")
			if compiler == "zig" && tools.Lacks("zig", "cc") { // Debian has none
				t.Skip("needs zig")
			}
			tools.Need(t, compiler, "readelf", "sh")
			out := filepath.Join(t.TempDir(), "shop")
			shell := tools.Command{Env: []string{"ZIG_LOCAL_CACHE_DIR=" + t.TempDir(), "ZIG_GLOBAL_CACHE_DIR=" + t.TempDir()}}
			for _, script := range []string{c.build, c.linked} {
				shell.Must(t, "sh", "-ec", strings.NewReplacer("OUT", "'"+out+"'", "LINKERS", "'"+wrappers+"'").Replace(script))
				checkVendored(t, out)
				expect.Contains(t, tools.Must(t, converter, "list", out), "serve", "the function")
			}
		})
	}
}

// checkVendored runs a program, untraced and traced, and compares its notes.
func checkVendored(t *testing.T, program string) {
	t.Helper()
	expect.Equal(t, true, isSum(tools.Must(t, program)))
	notes := tools.Must(t, "readelf", "-nW", program)
	for _, probe := range []string{"Provider: shop\n    Name: placed\n", "Provider: shop\n    Name: sent\n"} {
		expect.Contains(t, notes, probe)
	}
	if runtime.GOOS != "linux" {
		return
	}
	counts := tools.Must(t, converter, "trace", "-c", "--", program)
	for _, probe := range []string{":placed", ":sent"} {
		count := 0
		for line := range strings.Lines(counts) {
			if fields := strings.Fields(line); len(fields) == 2 && strings.HasSuffix(fields[1], probe) {
				count += expect.Value(strconv.Atoi(fields[0]))(t)
			}
		}
		expect.Equal(t, 3, count, "hits of %s in\n%s", probe, counts)
	}
}

// TestWeakStubs links programs that call stubs with the weak stubs of the page, without sdtconvert and through it.
func TestWeakStubs(t *testing.T) {
	block := regexp.MustCompile("(?s)```c\n(#define STUB .*?)```").FindStringSubmatch(page(t))
	if block == nil {
		t.Fatal("docs/languages.md has no weak stubs")
	}
	for name, c := range map[string]struct{ build, through string }{
		"Fortran":     {"gfortran -O2 -o OUT shop.f90 stubs.c", " -BLINKERS"},
		"Fortran LTO": {"gfortran -O2 -flto -o OUT shop.f90 stubs.c", " -BLINKERS"},
		"Ada":         {"gcc -O2 -c stubs.c; gnatmake -f -O2 -o OUT shop.adb -largs stubs.o", " -BLINKERS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "gfortran", "gnatmake", "gcc", "sh")
			language, _, _ := strings.Cut(name, " ")
			in := tools.Command{Directory: t.TempDir()}
			disk.Write(t, filepath.Join(in.Directory, "stubs.c"), block[1])
			for file, text := range newSection(t, language).files {
				disk.Write(t, filepath.Join(in.Directory, file), text)
			}
			out := filepath.Join(in.Directory, "plain")
			in.Must(t, "sh", "-ec", strings.Replace(c.build, "OUT", "plain", 1))
			expect.Equal(t, true, isSum(tools.Must(t, out)))
			tools.Refuses(t, "holds no records", converter, "list", out)
			in.Must(t, "sh", "-ec", strings.Replace(c.build, "OUT", "shop", 1)+strings.Replace(c.through, "LINKERS", "'"+wrappers+"'", 1))
			checkVendored(t, filepath.Join(in.Directory, "shop"))
		})
	}
}

// TestCrate uses the crate from a program that knows nothing of it.
func TestCrate(t *testing.T) {
	tools.Need(t, "rustc", "readelf")
	directory := t.TempDir()
	in := func(name string) string { return filepath.Join(directory, name) }
	disk.Write(t, in("store.rs"), "#![no_std]\npub fn put(n: u8) -> bool { sdt::sdt_probe!(store, put, u8 = n, bool = true); sdt::sdt_enabled!(store, put) }\n")
	disk.Write(t, in("main.rs"), "fn main() { println!(\"{}\", store::put(7)); }\n")
	rustc := []string{"--edition", "2021", "--out-dir", directory, "-L", directory}
	tools.Must(t, "rustc", append(rustc, "--crate-type", "lib", "--crate-name", "sdt", tools.Root("include", "rust", "lib.rs"))...)
	tools.Must(t, "rustc", append(rustc, "--extern", "sdt", "--crate-type", "lib", in("store.rs"))...)
	tools.Must(t, "rustc", append(rustc, "--extern", "store", in("main.rs"))...)
	expect.Equal(t, "false\n", tools.Must(t, in("main")))
	expect.Contains(t, tools.Must(t, "readelf", "-nW", in("main")), "Arguments: 1@")
}

// TestWithoutForm compiles the macros for a machine without a form of the note.
func TestWithoutForm(t *testing.T) {
	tools.Need(t, "rustc", "readelf")
	directory := t.TempDir()
	source := string(disk.Read(t, tools.Root("include", "rust", "sdt.rs")))
	disk.Write(t, filepath.Join(directory, "sdt.rs"), strings.NewReplacer(`"x86_64"`, `"x"`, `"aarch64"`, `"y"`, `"riscv64"`, `"z"`).Replace(source))
	main := "mod sdt;\nfn never() -> i32 { std::process::exit(1) }\nfn main() { sdt_probe!(a, b, i32 = never(), ptr = \"\"); assert!(!sdt_enabled!(a, b)); }\n"
	disk.Write(t, filepath.Join(directory, "main.rs"), main)
	out := filepath.Join(directory, "main")
	tools.Must(t, "rustc", "--edition", "2021", "-D", "warnings", "-o", out, filepath.Join(directory, "main.rs"))
	tools.Must(t, out)
	if notes := tools.Must(t, "readelf", "-nW", out); strings.Contains(notes, "stapsdt") {
		t.Errorf("notes are left: %s", notes)
	}
	expect.OK(t, os.WriteFile(filepath.Join(directory, "wrong.rs"), []byte(strings.Replace(main, "= never()", "= \"\"", 1)), 0o644))
	tools.Refuses(t, "mismatched types", "rustc", "--edition", "2021", "-o", out, filepath.Join(directory, "wrong.rs"))
}
