package links

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// tests is a program whose objects test a probe, one of them in an archive.
type tests struct {
	compiler
	objects []string // unconverted
	more    string   // main, which raises the semaphore
	archive string   // converted
}

func compileTests(t *testing.T, c compiler, library bool) tests {
	t.Helper()
	p := tests{compiler: c}
	var rename []string
	if library {
		rename = []string{"-Dmain=program_main"}
	}
	for _, name := range []string{"one", "two", "three"} {
		o := c.object(t, "tested.c", "-DNAME="+name, `-DSTRING="`+name+`"`)
		p.objects = append(p.objects, o)
	}
	p.archive = archive(t, c.machine, p.objects[2])
	p.objects = p.objects[:2]
	p.more = compiler{machine: c.machine, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}.object(t, "testing.c", rename...)
	return p
}

// archive collects an object in an archive, and converts it there.
func archive(t *testing.T, m *machine, object string) string {
	t.Helper()
	return files.Must(t, "libprobed.a", []string{"archive", m.Name, object}, func(out string) error {
		if _, err := tools.Try(m.Tool("ar"), "rcsD", out, object); err != nil {
			return err
		}
		_, err := tools.Try(converter, append(tools.RecordsAlone("--stapsdt"), out)...)
		return err
	})
}

// wantTests returns what the program prints.
func wantTests() string {
	var s strings.Builder
	for _, v := range []int64{0, 1, 0x8002, 0xffff, 0} {
		for _, name := range []string{"one", "two", "three"} {
			fmt.Fprintf(&s, "%s %d %d %d -1 %d -1 %d\n", name, 34*1000000+v, v, v, v, v*65536+v)
		}
	}
	return s.String()
}

var semaphoreOf = regexp.MustCompile(`Name: item\n.*Semaphore: (0x[0-9a-f]+)`)

// checkSemaphore finds one semaphore in an image, on a page that is its own, and all notes
// naming it.
func checkSemaphore(t *testing.T, path string, notes int) {
	t.Helper()
	f := disk.OpenELF(t, path)
	syms := expect.Value(f.Symbols())(t)
	syms = slices.DeleteFunc(syms, func(s elf.Symbol) bool { return s.Name != "shop_item_semaphore" })
	if len(syms) != 1 {
		t.Fatalf("%s has %d semaphores", path, len(syms))
	}
	sec := f.Section(".probes")
	if sec == nil || syms[0].Value < sec.Addr || syms[0].Value+4 > sec.Addr+sec.Size || sec.Addr%4096 != 0 {
		t.Errorf("%s: the semaphore is at %#x, .probes is %+v", path, syms[0].Value, sec)
	}
	named := semaphoreOf.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", path), -1)
	expect.Equal(t, notes, len(named), "notes of %s", path)
	for _, m := range named {
		expect.Equal(t, syms[0].Value, expect.Value(strconv.ParseUint(m[1], 0, 64))(t), "%s: a note names a semaphore", path)
	}
	at := fmt.Sprintf("%#x", syms[0].Value)
	checkLoads(t, path, func(s *listjson.Semaphore) bool { return s.Address == at })
}

// checkLoads finds in the listing of a file that each test is disabled, and which semaphore it
// loads.
func checkLoads(t *testing.T, path string, wanted func(*listjson.Semaphore) bool) {
	t.Helper()
	tests := 0
	for _, s := range list(t, path) {
		test := strings.HasPrefix(s.Kind, "isenabled")
		if s.State != "disabled" || test && (s.Semaphore == nil || !wanted(s.Semaphore)) {
			t.Errorf("%s: %+v, of the semaphore %+v", path, s, s.Semaphore)
		}
		if test {
			tests++
		}
	}
	if tests == 0 {
		t.Errorf("%s has no test", path)
	}
}

// TestSemaphores has tests in each form load one semaphore, in all that linkers make of
// several objects and an archive.
func TestSemaphores(t *testing.T) {
	all := product.New(dimensions("linker", "mode", "how")...)
	for _, c := range here(
		amd64Compiler(toolchains.GCC, "-O2"),
		amd64Compiler(toolchains.GCC, "-O2", "-fno-plt", "-ffunction-sections"),
		amd64Compiler(toolchains.Clang, "-Os", "-ffunction-sections"),
		amd64Compiler(toolchains.GCC, "-O2", "-mfunction-return=thunk-extern", "-fcf-protection=none", "-DNO_JCC"),
		crossCompiler(arm, toolchains.GCC, "-O2", "-ffunction-sections"),
		crossCompiler(arm, toolchains.Clang, "-Os"),
		crossCompiler(arm64, toolchains.GCC, "-O2", "-ffunction-sections"),
		crossCompiler(arm64, toolchains.Clang, "-O2", "-mbranch-protection=standard"),
		crossCompiler(i386, toolchains.GCC, "-O2", "-fcf-protection=full"),
		crossCompiler(i386, toolchains.GCC, "-O2", "-fno-plt", "-ffunction-sections"),
		crossCompiler(loong64, toolchains.GCC, "-O2"),
		crossCompiler(loong64, toolchains.GCC, "-O2", "-mcmodel=medium"),
		crossCompiler(ppc64, toolchains.GCC, "-O2"),
		crossCompiler(ppc64le, toolchains.Clang, "-Os", "-ffunction-sections"),
		crossCompiler(power10, toolchains.GCC, "-O2", "-mcpu=power10"),
		crossCompiler(riscv64, toolchains.GCC, "-O2"),
		crossCompiler(riscv64, toolchains.Clang, "-Os", "-ffunction-sections"),
		crossCompiler(s390x, toolchains.Clang, "-Os", "-ffunction-sections"),
	) {
		for i, ld := range c.machine.linkers {
			for j, md := range modes {
				for k, how := range []string{"", "-r", "--gc-sections"} {
					if c.machine.brief && (i+j)%3 != k || md.cannot(c.machine, ld) != "" {
						continue
					}
					all.Add(strings.Join([]string{c.String(), ld.Name, md.name, how}, "/"), append(c.values(), ld.Name, md.name, how), func(t *testing.T) {
						c.parallel(t, ld.Path)
						checkTests(t, c, ld, md, how)
					})
				}
			}
		}
	}
	all.Run(t)
}

func checkTests(t *testing.T, c compiler, ld toolchains.Linker, md mode, how string) {
	m := c.machine
	p := compileTests(t, c, md.library)
	converted := convertAll(t, p.objects, "--stapsdt")
	for _, object := range converted {
		checkLoads(t, object, func(s *listjson.Semaphore) bool { return s.Symbol == "shop_item_semaphore" })
	}
	objects := append(converted, p.more)
	if strings.Contains(c.String(), "thunk-extern") {
		objects = append(objects, returnThunk(t))
	}
	var flags []string
	switch how {
	case "-r":
		merged := expect.Value(merge(ld, []string{"-m", m.Emulation}, objects...))(t)
		objects = []string{merged}
	case "--gc-sections":
		flags = []string{"-Wl,--gc-sections"}
	}
	starter := compiler{machine: m, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}.object(t, "main.c")
	got, err := md.link(program{machine: m, starter: starter}, ld, flags, append(objects, p.archive))
	if err != nil {
		if how == "-r" && !ld.Can(toolchains.GroupsWithR) && strings.Contains(err.Error(), "invalid section group") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	expect.Equal(t, wantTests(), expect.Value(run(m, got.exe))(t).stdout, "prints")
	checkSemaphore(t, got.image, 3)
}

// returnThunk returns an object that has what code returns through.
func returnThunk(t *testing.T) string {
	t.Helper()
	return files.Must(t, "returnthunk.o", []string{"returnthunk"}, func(out string) error {
		source := strings.TrimSuffix(out, ".o") + ".s"
		text := ".text\n.globl __x86_return_thunk\n.hidden __x86_return_thunk\n.type __x86_return_thunk,@function\n__x86_return_thunk:\n\tret\n\tint3\n.section .note.GNU-stack,\"\",@progbits\n"
		if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
			return err
		}
		_, err := tools.Try("as", "-o", out, source)
		return err
	})
}

// TestSemaphoresOfBigEndianPrograms links a program that needs no C library, of which
// there is none.
func TestSemaphoresOfBigEndianPrograms(t *testing.T) {
	emulator := toolchains.QEMU("aarch64_be")
	tools.Need(t, arm64.Tool("gcc"), arm64.Tool("ld"), toolchains.LLVM("ld.lld"), emulator)
	c := compiler{machine: arm64, cc: toolchains.GCC, flags: []string{"-mbig-endian", "-O2", "-ffreestanding", "-fno-stack-protector"}}
	main := c.object(t, "bigendian.c")
	tested := convert(t, c.object(t, "tested.c", "-DNAME=one", `-DSTRING="one"`), "--stapsdt")
	for _, ld := range []string{arm64.Tool("ld"), toolchains.LLVM("ld.lld")} {
		path := expect.Value(files.Run("program", ld, "-EB", "-m", "aarch64linuxb", main, tested))(t)
		expect.Equal(t, "right\nright\nright\n", tools.Must(t, emulator, path), "%s: the program prints", ld)
		checkSemaphore(t, path, 1)
	}
}

// TestReturnThunk links code that returns through a thunk, and runs it: no tail
// site may return by itself.
func TestReturnThunk(t *testing.T) {
	tails := []string{"--return-thunk"}
	cases := []struct {
		machine  *machine
		compiler toolchains.Compiler
		define   string
		flags    []string
	}{
		{amd64, toolchains.GCC, "-DALL", nil},
		{amd64, toolchains.Clang, "-DALL", nil},
		{amd64, toolchains.GCC, "-DTAILS_ONLY", tails},
		{amd64, toolchains.Clang, "-DTAILS_ONLY", tails},
		{s390x, toolchains.GCC, "-DALL", nil},
		{s390x, toolchains.GCC, "-DTAILS_ONLY", tails},
	}
	all := product.New("machine", "compiler", "define", "linker")
	for _, tc := range cases {
		for _, ld := range tc.machine.linkers {
			name := strings.TrimPrefix(tc.machine.Triplet+" ", " ") + tc.compiler.Name + tc.define + "/" + ld.Name
			all.Add(name, []string{tc.machine.Name, tc.compiler.Name, tc.define, ld.Name}, func(t *testing.T) {
				t.Parallel()
				m := tc.machine
				c := compiler{machine: m, cc: tc.compiler, flags: []string{"-Os", "-mfunction-return=thunk-extern", "-fPIC"}}
				c.need(t)
				tools.Need(t, ld.Path)
				plain := compiler{machine: m, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
				o := c.object(t, "thunk.c", tc.define)
				main := plain.object(t, "thunkmain.c", tc.define)
				twin, err := link(m, ld, "thunk", []string{"-pie"}, o, main, plain.object(t, "thunkmain.c", "-DSTUBS"))
				unconverted(t, err)
				got := expect.Value(link(m, ld, "thunk", []string{"-pie"}, convert(t, o, tc.flags...), main))(t)
				for _, exe := range []string{twin, got} {
					command := m.Command(exe)
					tools.Must(t, command[0], command[1:]...)
				}
				checkThunk(t, m, openImage(t, got), twinSites(t, m, openImage(t, twin)))
			})
		}
	}
	all.Run(t)
}

func checkThunk(t *testing.T, m *machine, im *image, want []site) {
	t.Helper()
	got := im.records(t, pairs)
	// A conditional tail call is another instruction here, so places differ.
	inexact := *m
	inexact.exact = false
	compareSites(t, &inexact, got, want)
	for _, s := range got {
		code := im.bytes(t, s.addr, 8)
		if code[0] == 0xc3 || code[2] == 0xc3 && code[0] == 0x31 || code[0] == 0x07 || m == s390x && code[4] == 0x07 && code[5] == 0xfe {
			t.Errorf("%s: %s returns by itself: % x", filepath.Base(im.path), s, code)
		}
	}
	checkNames(t, im)
}

// The example's makefile compares the converted program with the other.
func TestCProgramExample(t *testing.T) {
	tools.Need(t, "make", "gcc", "g++")
	out := tools.Must(t, "make", "-C", tools.Root("examples", "c-program"), "SDTCONVERT="+converter,
		"BUILD="+filepath.Join(t.TempDir(), "build"), "CC=gcc", "CXX=g++", "check")
	for _, want := range []string{"serve done\n", "queue_get get\n", "queue_close closed\n", "work expensive\n"} {
		expect.Contains(t, out, want)
	}
}
