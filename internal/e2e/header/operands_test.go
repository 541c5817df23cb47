package header

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestFewRegisters compiles tracepoints where the machine with the fewest registers has
// none to spare. A compiler that finds too few gives up.
func TestFewRegisters(t *testing.T) {
	all := product.New("machine", "compiler", "optimisation", "flag")
	for _, m := range toolchains.Machines {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
			compiler := strings.Join(m.CC(cc), " ")
			for _, level := range []string{"-O0", "-O2", "-Os"} {
				for _, flag := range []string{"-fno-pic", "-fPIC", "-fPIC -fno-omit-frame-pointer", "-fsanitize=undefined"} {
					all.Add(compiler+level+flag, []string{m.Name, cc.Name, level, flag}, func(t *testing.T) {
						t.Parallel()
						m.Need(t)
						tools.Need(t, m.CC(cc)[0])
						compile(t, compiler, "registers.c", append(strings.Fields(flag), level, "-Wall", "-Werror")...)
					})
				}
			}
		}
	}
	all.Run(t)
}

// usdtPrints is what testdata/usdt.c prints, which raises first the shared semaphore and then the other.
const usdtPrints = `1 own 0 orders 0
unnamed 0
8 own 0 orders 0
orders 0
2 own 0 orders 1
3 own 1 orders 1
unnamed 1
8 own 1 orders 1
orders 1
`

// usdtNotes matches a note of readelf -n: its name, its semaphore and its arguments.
var usdtNotes = regexp.MustCompile(`(?m)^    Name: (\w+)\n.*Semaphore: 0x0*(\w+)\n    Arguments: ?(.*)$`)

// TestUSDT compiles, converts and runs the macros of include/usdt.h: tracepoints without a guard, with their own and with
// a shared one, in namespaces, templates and inline functions of several files.
func TestUSDT(t *testing.T) {
	all := product.New("machine", "compiler", "optimisation")
	for _, m := range toolchains.Machines {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
			for _, level := range []string{"-O0", "-O2"} {
				all.Add(m.Name+cc.Name+level, []string{m.Name, cc.Name, level}, func(t *testing.T) {
					t.Parallel()
					m.Need(t)
					tools.Need(t, append(m.Tools("g++", "readelf", "nm"), m.CC(cc)[0], m.CXX(cc)[0])...)
					flags := []string{level, "-Wall", "-Wextra", "-Werror"}
					c := convert(t, compile(t, strings.Join(m.CC(cc), " "), "usdt.c", flags...))
					cxx := convert(t, compile(t, strings.Join(m.CXX(cc), " "), "usdt.cc", flags...))
					exe := output(t, "usdt", m.Tool("g++"), "-static", c, cxx)
					command := []string{exe}
					if m.QEMU != "" {
						command = []string{m.QEMU, exe}
					}
					expect.Equal(t, usdtPrints, tools.Must(t, command[0], command[1:]...))
					checkUSDTNotes(t, m, exe)
				})
			}
		}
	}
	all.Run(t)
}

// TestLTOOfCXX links tracepoints that no declaration names through sdtconvert, of code that is generated in the link.
func TestLTOOfCXX(t *testing.T) {
	wrappers := memoryWrappers(t)
	for _, lto := range toolchains.LTOs() {
		t.Run(lto.Compiler.CXX+" "+lto.Linker.Path+" "+lto.Flag, func(t *testing.T) {
			t.Parallel()
			cxx := toolchains.AMD64.CXX(lto.Compiler)
			tools.Need(t, cxx[0], lto.Linker.Path, "readelf", "nm")
			exe := filepath.Join(t.TempDir(), "usdt")
			words := []string{"-O2", lto.Flag, "-Wall", "-Wextra", "-Werror", "-I" + include, "-B" + wrappers, "-o", exe, "testdata/usdt_main.cc", "testdata/usdt.cc"}
			tools.Command{Env: []string{"SDTCONVERT_LD=" + lto.Linker.Path}}.Must(t, cxx[0], append(cxx[1:], words...)...)
			expect.Equal(t, "unnamed 0\n8 own 0 orders 0\norders 0\n", tools.Must(t, exe))
			checkUSDTNotes(t, toolchains.AMD64, exe)
		})
	}
}

// checkUSDTNotes compares the semaphores of notes with the symbols, and counts arguments.
func checkUSDTNotes(t *testing.T, m *toolchains.Machine, exe string) {
	t.Helper()
	symbols := map[string]string{"": "0"}
	for line := range strings.Lines(tools.Must(t, m.Tool("nm"), exe)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasSuffix(f[2], "_semaphore") {
			symbols[f[2]] = strings.TrimLeft(f[0], "0")
		}
	}
	wants := map[string]struct {
		semaphore        string
		arguments, sites int
	}{
		"none": {"", 0, 4}, "bare": {"", 1, 4}, "own": {"shop_own_semaphore", 3, 5}, "shared": {"sdt_orders_semaphore", 2, 4},
		"other": {"sdt_orders_semaphore", 0, 4}, "twelve": {"", 12, 4}, "member": {"sdt_orders_semaphore", 2, 1},
		"lambda": {"", 2, 1}, "in_template": {"", 1, 1}, "unnamed": {"", 2, 2}, "undeclared": {"", 1, 1},
	}
	seen := map[string]int{}
	for _, note := range usdtNotes.FindAllStringSubmatch(tools.Must(t, m.Tool("readelf"), "-nW", exe), -1) {
		name, want := note[1], wants[note[1]]
		seen[name]++
		if note[2] != symbols[want.semaphore] && !(want.semaphore == "" && strings.Trim(note[2], "0") == "") || strings.Count(note[3], "@") != want.arguments {
			t.Errorf("%v, want %+v", note[1:], want)
		}
	}
	for name, want := range wants {
		if seen[name] < 1 || seen[name] > want.sites {
			t.Errorf("%s has %d sites, want 1 to %d", name, seen[name], want.sites)
		}
	}
}

// TestUSDTSuite runs the tests of libbpf's header, whose directory USDT_SUITE names, with include/usdt.h in its place.
// Those with structures as arguments do not compile. Without optimisation, constants are in registers.
func TestUSDTSuite(t *testing.T) {
	suite := os.Getenv("USDT_SUITE")
	if suite == "" {
		t.Skip("USDT_SUITE names no copy of github.com/libbpf/usdt")
	}
	tools.NeedUprobes(t)
	tools.Need(t, "gawk", "make", "bpftrace")
	directory, original := t.TempDir(), t.TempDir()
	for _, copied := range []string{directory, original} {
		expect.OK(t, os.CopyFS(copied, os.DirFS(suite)))
	}
	expect.OK(t, os.WriteFile(filepath.Join(directory, "usdt.h"), expect.Value(os.ReadFile(filepath.Join(include, "usdt.h")))(t), 0o666))
	linkers := filepath.Join(directory, "linkers")
	expect.OK(t, os.Mkdir(linkers, 0o777))
	expect.OK(t, os.Symlink(converter, filepath.Join(linkers, "ld")))
	// The suite expects nothing but its own lines of bpftrace, and runs it by sudo.
	tracer := filepath.Join(linkers, "bpftrace")
	expect.OK(t, os.WriteFile(tracer, []byte("#!/bin/sh\n"+expect.Value(exec.LookPath("bpftrace"))(t)+` "$@" 2>&1 | grep --line-buffered -vE '^$|^open|^ERROR'`+"\n"), 0o777))
	expect.OK(t, os.WriteFile(filepath.Join(linkers, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o777))
	structures := []string{"arg_types", "cxx_arg_types", "cxx_long_nop_usdt", "long_nop_usdt"}
	constant := []string{"arg_consts", "arg_nums"}
	for _, shared := range []string{"0", "1"} {
		for name := range strings.FieldsSeq(tools.Must(t, "make", "-s", "-C", filepath.Join(directory, "tests"), "list")) {
			if slices.Contains(structures, name) || strings.HasPrefix(name, "make") {
				continue
			}
			level := "-O0"
			if slices.Contains(constant, name) {
				level = "-O2"
			}
			t.Run(name+"/"+shared, func(t *testing.T) {
				cmd := exec.Command("make", "test-"+name, "SHARED="+shared, "EXTRA_CFLAGS=-I"+include+" "+level, "EXTRA_CXXFLAGS=-I"+include+" "+level,
					"OUTPUT="+filepath.Join(directory, "out"+level), "BPFTRACE="+tracer,
					"LDFLAGS=-B"+linkers+" -Wl,-rpath,"+filepath.Join(directory, "out"+level, "shared"))
				cmd.Dir = filepath.Join(directory, "tests")
				cmd.Env = append(os.Environ(), "PATH="+linkers+":"+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				if err == nil {
					return
				}
				// The tracer may fail with libbpf's own header, too.
				own := exec.Command("make", "test-"+name, "SHARED="+shared, "BPFTRACE="+tracer, "OUTPUT="+filepath.Join(directory, "own"))
				own.Dir, own.Env = filepath.Join(original, "tests"), cmd.Env
				if _, err := own.CombinedOutput(); err != nil {
					t.Skip("fails with libbpf's header, too")
				}
				t.Errorf("%v\n%s", err, out)
			})
		}
	}
}
