package kernel

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// every is the share of the kernel's modules that is looked at: one in so many.
const every = 40

func TestMain(m *testing.M) {
	tools.Short(`TestFreeBSDLinker`)
	os.Exit(m.Run())
}

// TestModules converts the __fentry__ calls of kernel modules, and lets objdump
// judge that these calls are nops afterwards and that nothing else has changed.
func TestModules(t *testing.T) {
	tools.Need(t, "apt-get")
	tools.Need(t, "objdump")
	tool := build(t)
	modules := findModules(t)
	total := 0
	for i := 0; i < len(modules); i += every {
		total += convertModule(t, tool, modules[i])
	}
	if total == 0 {
		t.Fatal("no module has a call of __fentry__")
	}
	t.Logf("%d calls in %d of %d modules", total, (len(modules)+every-1)/every, len(modules))
}

func build(t *testing.T) string {
	t.Helper()
	return expect.Value(tools.Build(t.TempDir()))(t)
}

func findModules(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("../../../scripts/kernel-tree", "--modules").Output()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no modules: %v", err) // there may be no network
	} else if err != nil {
		t.Fatal(err)
	}
	directory := strings.TrimSpace(string(out))
	var modules []string
	err = filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".ko") {
			modules = append(modules, path)
		}
		return err
	})
	if err != nil || len(modules) == 0 {
		t.Fatalf("no modules in %s: %v", directory, err)
	}
	return modules
}

// convertModule returns the number of calls in a module.
func convertModule(t *testing.T, tool, module string) int {
	t.Helper()
	converted := filepath.Join(t.TempDir(), filepath.Base(module))
	tools.Output(t, tool, "--symbol", "__fentry__", "-o", converted, module)
	calls := 0
	before, after := disassemble(t, module), disassemble(t, converted)
	if len(before) != len(after) {
		t.Fatalf("%s: %d lines of code, and %d before", module, len(after), len(before))
	}
	for i := range before {
		want := before[i]
		if call, ok := asNop(want); ok {
			want = call
			calls++
		}
		if after[i] != want {
			t.Fatalf("%s: got %q, want %q, before %q", module, after[i], want, before[i])
		}
	}
	checkListing(t, tool, converted, functionsOf(before))
	if out := tools.Output(t, "readelf", "-rW", converted); strings.Contains(out, " __fentry__ ") {
		t.Errorf("%s: a relocation against __fentry__ is left", module)
	}
	return calls
}

// disassemble returns the lines of objdump that are code, with their
// relocations. The addend of R_X86_64_NONE is left out: it counts records.
func disassemble(t *testing.T, module string) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(tools.Output(t, "objdump", "-drw", module)) {
		if strings.Contains(line, "file format") {
			continue
		}
		if i := strings.Index(line, "sdt_instances_set"); i >= 0 {
			line = line[:i+len("sdt_instances_set")]
		}
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return lines
}

// asNop returns what the line of a call of __fentry__ has to become.
func asNop(line string) (string, bool) {
	fields := strings.Split(line, "\t")
	if len(fields) != 5 || fields[4] != "__fentry__-0x4" {
		return "", false
	}
	var at uint64
	if _, err := fmt.Sscanf(strings.TrimSpace(fields[3]), "%x: R_X86_64_PLT32", &at); err != nil {
		return "", false
	}
	return fmt.Sprintf("%s\t0f 1f 44 00 00       \tnopl   0x0(%%rax,%%rax,1)\t%x: R_X86_64_NONE\tsdt_instances_set", fields[0], at), true
}

// functionsOf lists where the functions begin that call __fentry__, by objdump's
// labels: section+offset.
func functionsOf(disassembly []string) []string {
	var starts []string
	section, start := "", uint64(0)
	for _, line := range disassembly {
		if name, ok := strings.CutPrefix(line, "Disassembly of section "); ok {
			section = strings.TrimSuffix(name, ":")
		} else if at, _, ok := strings.Cut(line, " <"); ok && strings.HasSuffix(line, ">:") {
			start, _ = strconv.ParseUint(at, 16, 64)
		} else if _, ok := asNop(line); ok {
			starts = append(starts, fmt.Sprintf("%s+%#x", section, start))
		}
	}
	slices.Sort(starts)
	return starts
}

// list returns the probes of a module.
func list(t *testing.T, tool, module string) []listjson.Probe {
	t.Helper()
	return listjson.Probes(t, tools.Output(t, tool, "list", "--json", module))
}

// checkListing compares the functions of a listing.
func checkListing(t *testing.T, tool, module string, want []string) {
	t.Helper()
	if len(want) == 0 {
		return
	}
	var got []string
	for _, p := range list(t, tool, module) {
		for _, s := range p.Sites {
			at := expect.Value(strconv.ParseUint(s.Address, 0, 64))(t)
			got = append(got, fmt.Sprintf("%s+%#x", s.Section, at-s.FunctionOffset))
		}
	}
	slices.Sort(got)
	expect.Equal(t, want, got, "%s: functions with calls (-) and those listed (+)", module)
}

// kmod is a directory with examples/freebsd-kmod, and what bmake is told.
type kmod struct {
	directory string
	bmake     []string
}

// TestFreeBSD builds a module for FreeBSD with the makefile of the example, and
// looks in it for what the kernel looks for: sys/kern/link_elf_obj.c and link_elf.c.
func TestFreeBSD(t *testing.T) {
	tools.Need(t, "bmake", "awk")
	t.Setenv("PATH", filepath.Dir(build(t))+":"+os.Getenv("PATH"))
	for _, version := range []string{toolchains.Debian.OldLLVM, toolchains.Debian.LLVM} {
		for _, machine := range []string{"amd64", "aarch64"} {
			for _, ctf := range []string{"no", "yes"} {
				t.Run(fmt.Sprintf("clang-%s %s ctf=%s", version, machine, ctf), func(t *testing.T) {
					t.Parallel()
					tools.Need(t, "clang-"+version, "ld.lld-"+version, "llvm-objcopy-"+version, toolchains.LLVM("llvm-readelf"))
					checkKmod(t, newKmod(t, machine, version, ctf), machine)
				})
			}
		}
	}
}

// TestFreeBSDLinker converts the objects when they are linked.
func TestFreeBSDLinker(t *testing.T) {
	tools.Need(t, "bmake", "awk", toolchains.LLVM("clang"), toolchains.LLVM("ld.lld"), toolchains.LLVM("llvm-objcopy"), toolchains.LLVM("llvm-readelf"))
	t.Setenv("PATH", filepath.Dir(build(t))+":"+os.Getenv("PATH"))
	for _, machine := range []string{"amd64", "aarch64"} {
		t.Run(machine, func(t *testing.T) {
			k := newKmod(t, machine, toolchains.Debian.LLVM, "no")
			expect.Value(k.try("SDTCONVERT=", "coffee.o", "cup.o"))(t)
			calls := k.calls(t)
			if out, err := k.try("SDTCONVERT=", "LD=sdtconvert ld --in-place --layout freebsd --linker "+toolchains.LLVM("ld.lld")+" --"); err != nil || strings.Contains(out, ".o ||") {
				t.Fatal(err, out)
			}
			k.checkModule(t, machine, calls)
		})
	}
}

func newKmod(t *testing.T, machine, version, ctf string) kmod {
	t.Helper()
	root := t.TempDir()
	directory := filepath.Join(root, "examples/freebsd-kmod")
	for _, dir := range []string{"examples/freebsd-kmod", "include"} {
		expect.OK(t, os.CopyFS(filepath.Join(root, dir), os.DirFS("../../../"+dir)))
	}
	mk := expect.Value(filepath.Abs("testdata/mk"))(t)
	target := strings.Replace(machine, "amd64", "x86_64", 1) + "-unknown-freebsd14"
	return kmod{directory, []string{"-C", directory, "-m", mk, "MACHINE_CPUARCH=" + machine, "MK_CTF=" + ctf,
		"CTFCONVERT=echo is made: ", "CC=clang-" + version + " --target=" + target, "LD=ld.lld-" + version,
		"NM=llvm-nm-" + version, "OBJCOPY=llvm-objcopy-" + version}}
}

func (k kmod) try(variables ...string) (string, error) {
	return tools.Try("bmake", append(slices.Clone(k.bmake), variables...)...)
}

func (k kmod) path(name string) string { return filepath.Join(k.directory, name) }

func checkKmod(t *testing.T, k kmod, machine string) {
	t.Helper()
	expect.Value(k.try("SDTCONVERT=", "coffee.o", "cup.o"))(t)
	calls := k.calls(t)
	for _, object := range objects {
		expect.OK(t, os.Remove(k.path(object)))
	}
	k.checkFailure(t)
	out := expect.Value(k.try("-j4"))(t)
	if slices.Contains(k.bmake, "MK_CTF=yes") && strings.Count(out, "\nis made: coffee.o") != 1 {
		t.Errorf("ctfconvert is not run: %s", out)
	}
	k.checkModule(t, machine, calls)
	k.checkIncremental(t)
}

var objects = []string{"coffee.o", "cup.o"}

// calls returns those of stubs, in objects that are not converted.
func (k kmod) calls(t *testing.T) []string {
	t.Helper()
	var calls []string
	for _, object := range objects {
		relocations := tools.Output(t, toolchains.LLVM("llvm-readelf"), "-rW", k.path(object))
		for _, m := range regexp.MustCompile(`__dtrace_(\w+?)_coffee___(\w+)`).FindAllStringSubmatch(relocations, -1) {
			calls = append(calls, m[1]+" "+m[2])
		}
	}
	slices.Sort(calls)
	return calls
}

// checkModule looks for a site of each call, and for the sets as the kernel does.
func (k kmod) checkModule(t *testing.T, machine string, calls []string) {
	t.Helper()
	var sites []string
	count := map[string]int{}
	for _, p := range list(t, "sdtconvert", k.path("coffee.ko")) {
		for _, s := range p.Sites {
			set := "instances"
			if s.Kind == "isenabled" {
				set = "isenabled"
			}
			count[set]++
			sites = append(sites, strings.Replace(s.Kind, "tail", "probe", 1)+" "+p.Name)
		}
	}
	slices.Sort(sites)
	if diff := cmp.Diff(calls, sites); diff != "" || len(calls) < 5 {
		t.Errorf("calls (-) and sites (+): %s", diff)
	}
	headers := tools.Output(t, toolchains.LLVM("llvm-readelf"), "-hSW", k.path("coffee.ko"))
	if !regexp.MustCompile(`OS/ABI: +UNIX - FreeBSD`).MatchString(headers) {
		t.Errorf("the module is none of FreeBSD:\n%s", headers)
	}
	for set, n := range count {
		address, size := onlySection(t, headers, "set_sdt_"+set+"_set")
		expect.Equal(t, uint64(n*8), size, "the size of set_sdt_%s_set", set)
		if machine != "amd64" {
			symbols := tools.Output(t, toolchains.LLVM("llvm-readelf"), "--dyn-syms", "-W", k.path("coffee.ko"))
			checkSymbol(t, symbols, "__start_set_sdt_"+set+"_set", address)
			checkSymbol(t, symbols, "__stop_set_sdt_"+set+"_set", address+size)
		}
	}
}

// onlySection finds a section in what llvm-readelf -S prints. The kernel takes the
// first of that name, so there may be no other one.
func onlySection(t *testing.T, headers, name string) (address, size uint64) {
	t.Helper()
	found := regexp.MustCompile(`\] `+name+` +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) `).FindAllStringSubmatch(headers, -1)
	if len(found) != 1 {
		t.Fatalf("%d sections %s:\n%s", len(found), name, headers)
	}
	return number(t, found[0][1]), number(t, found[0][2])
}

func number(t *testing.T, hex string) uint64 {
	t.Helper()
	return expect.Value(strconv.ParseUint(hex, 16, 64))(t)
}

func checkSymbol(t *testing.T, symbols, name string, value uint64) {
	t.Helper()
	found := regexp.MustCompile(`: ([0-9a-f]+) .* GLOBAL +\w+ +\d+ ` + name).FindStringSubmatch(symbols)
	if found == nil || number(t, found[1]) != value {
		t.Errorf("%s is not at %#x:\n%s", name, value, symbols)
	}
}

// checkFailure has the conversion fail: no object may be left to link.
func (k kmod) checkFailure(t *testing.T) {
	t.Helper()
	if out, err := k.try("SDTCONVERT=false"); err == nil {
		t.Errorf("make goes on: %s", out)
	}
	disk.Absent(t, k.path("coffee.o"))
}

// checkIncremental builds again after nothing has changed, and after a source has.
func (k kmod) checkIncremental(t *testing.T) {
	t.Helper()
	if out, err := k.try(); err != nil || strings.Contains(out, "sdtconvert") {
		t.Errorf("nothing has changed: %v\n%s", err, out)
	}
	later := time.Now().Add(time.Minute)
	expect.OK(t, os.Chtimes(k.path("cup.c"), later, later))
	out, err := k.try()
	if err != nil || strings.Contains(out, "-o coffee.o") || !strings.Contains(out, "--layout freebsd cup.o") {
		t.Errorf("a source has changed: %v\n%s", err, out)
	}
}
