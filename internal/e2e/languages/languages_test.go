package languages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string // the program
	wrappers  string // the directory in which it has the names of linkers
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestLanguages`, &converter, func(directory string) error {
		wrappers = filepath.Join(directory, "wrappers")
		return tools.LinkAs(wrappers, converter, "ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold")
	})
}

// installed is the directory of wrappers that the page names.
const installed = "/usr/local/libexec/sdtconvert"

// languages are the sections of the page, and the tools that each takes.
var languages = []struct {
	section string
	tools   []string
	// rare reports that Debian has no such compiler: a test without one is skipped in CI, too.
	rare bool
}{
	{"Rust", []string{"cargo", "rustc", "gcc"}, false},
	{"Go, with C in it", []string{"go", "gcc"}, false},
	{"Fortran", []string{"gfortran"}, false},
	{"Ada", []string{"gnatmake", "gnatbind", "gnatlink"}, false},
	{"D", []string{"gdc", "ldc2"}, false},
	{"Zig", []string{"zig", "cc"}, true},
}

func TestEachLanguageHasItsTest(t *testing.T) {
	sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(page(t), -1)
	var want, got []string
	for _, s := range sections[1:] { // behind what they have in common
		want = append(want, s[1])
	}
	for _, l := range languages {
		got = append(got, l.section)
	}
	if !slices.Equal(got, want) {
		t.Errorf("tests of %q, and sections %q", got, want)
	}
}

func TestLanguages(t *testing.T) {
	for _, l := range product.Few(t.Name(), languages) {
		t.Run(l.section, func(t *testing.T) {
			t.Parallel()
			if l.rare && tools.Lacks(l.tools...) {
				t.Skipf("needs %v", l.tools)
			}
			tools.Need(t, append([]string{"gdb", "sh"}, l.tools...)...)
			s := newSection(t, l.section)
			for i, steps := range s.steps {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) { s.run(t, steps) })
			}
		})
	}
}

func page(t *testing.T) string {
	t.Helper()
	return string(disk.Read(t, tools.Root("docs", "languages.md")))
}

// section is what the page shows for one language, and the programs that it links to.
type section struct {
	files map[string]string
	steps []string // shell commands, each of which build shop and shop-debug
	trace string   // commands of gdb
}

var (
	file  = regexp.MustCompile("(?ms)`([\\w./-]+)`:\n\n```\\w*\n(.*?)^```$")
	link  = regexp.MustCompile(`\]\(\.\./(examples/languages/\w+/([\w./-]+))\)`)
	shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	trace = regexp.MustCompile(`(?ms)^\$ cat stop.gdb\n(.*?)^\$ gdb`)
)

func newSection(t *testing.T, name string) *section {
	t.Helper()
	text := page(t)
	s := &section{files: map[string]string{}, trace: trace.FindStringSubmatch(text)[1]}
	_, text, ok := strings.Cut(text, "\n## "+name+"\n")
	if !ok {
		t.Fatalf("docs/languages.md has no section %q", name)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, f := range file.FindAllStringSubmatch(text, -1) {
		s.files[f[1]] = f[2]
	}
	for _, l := range link.FindAllStringSubmatch(text, -1) {
		s.files[l[2]] = string(disk.Read(t, tools.Root(filepath.FromSlash(l[1]))))
	}
	for _, c := range shell.FindAllStringSubmatch(text, -1) {
		s.steps = append(s.steps, c[1])
	}
	if len(s.files) == 0 || len(s.steps) == 0 {
		t.Fatalf("section %q shows %d files and %d builds", name, len(s.files), len(s.steps))
	}
	return s
}

// run takes the steps of one build, and looks at its two programs.
func (s *section) run(t *testing.T, steps string) {
	t.Parallel()
	directory := t.TempDir()
	for name, text := range s.files {
		path := filepath.Join(directory, name)
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
		disk.Write(t, path, text)
	}
	steps = strings.ReplaceAll(steps, installed, wrappers)
	if strings.Contains(steps, "linker-features") && rustIsOlder(t, 90) {
		steps = strings.ReplaceAll(steps, " -C linker-features=-lld", "")
	}
	here := tools.Command{Directory: directory, Env: []string{
		"PATH=" + filepath.Dir(converter) + ":" + os.Getenv("PATH"),
		"CARGO_NET_OFFLINE=true", "CARGO_TARGET_DIR=target", "GOFLAGS=-mod=mod", "GOWORK=off",
		"ZIG_LOCAL_CACHE_DIR=" + directory, "ZIG_GLOBAL_CACHE_DIR=" + directory,
	}}
	here.Must(t, "sh", "-ec", steps)
	for _, program := range []string{"shop-debug", "shop"} {
		t.Run(program, func(t *testing.T) { s.check(t, filepath.Join(directory, program)) })
	}
}

// rustIsOlder reports whether rustc is older than 1.<minor>.
func rustIsOlder(t *testing.T, minor int) bool {
	t.Helper()
	out := tools.Output(t, "rustc", "--version")
	var got int
	expect.Value(fmt.Sscanf(out, "rustc 1.%d.", &got))(t, "%q", out)
	return got < minor
}

// check runs a program, lists it, and traces it.
func (s *section) check(t *testing.T, program string) {
	if out := tools.Must(t, program); !isSum(out) {
		t.Errorf("it prints %q", out)
	}
	list := tools.Must(t, converter, "list", "-v", program)
	for _, want := range []string{" sent\n", " placed\n", "shop_placed_semaphore"} {
		expect.Contains(t, list, want)
	}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "      site ") && !strings.Contains(line, "  disabled") {
			t.Errorf("a site that is not disabled: %s", line)
		}
	}
	script := filepath.Join(t.TempDir(), "stop.gdb")
	disk.Write(t, script, s.trace)
	out := tools.Must(t, "gdb", "-nx", "-batch", "-x", script, program)
	var got []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "placed ") || strings.HasPrefix(line, "sent ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{"placed 1 tea", "sent 1 21", "placed 2 milk", "sent 2 28", "placed 3 biscuits", "sent 3 56"}
	if !slices.Equal(got, want) || !strings.Contains(strings.Join(strings.Fields(out), " "), "sum 105") {
		t.Errorf("gdb sees %q, want %q:\n%s", got, want, out)
	}
}

// isSum compares what a program prints, but for blanks.
func isSum(out string) bool { return strings.Join(strings.Fields(out), " ") == "sum 105" }

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
				expect.Lacks(t, tools.Must(t, converter, "list", out), " sub_", "a function without a name")
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
