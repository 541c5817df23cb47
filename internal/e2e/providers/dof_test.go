package providers

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/kerneldof"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// dofTarget is a system whose kernel has DTrace.
type dofTarget struct {
	triplet string
	kernel  kerneldof.Kernel
	tests   bool // is-enabled tests are armed there
	linkers []toolchains.Linker
}

func dofTargets() map[string]*dofTarget {
	lld := toolchains.ARM64.Linker("lld")
	return map[string]*dofTarget{
		"freebsd-amd64": {dofTriplet, kerneldof.FreeBSD, true, toolchains.AMD64.Linkers()},
		"freebsd-arm64": {"aarch64-unknown-freebsd14.0", kerneldof.FreeBSD, false, []toolchains.Linker{lld}},
		"illumos-amd64": {"x86_64-pc-solaris2.11", kerneldof.Illumos, true, []toolchains.Linker{toolchains.AMD64.Linker("bfd")}},
	}
}

var dofFlags = []string{"-O2", "-fPIC", "-ffreestanding"}

// dofObjects compiles the sources for a target, with the header that is made for it.
func dofObjects(t *testing.T, directory string, compiler, cxx []string, target string) (objects []string) {
	t.Helper()
	dir := filepath.Join("dof", "shop.d")
	tools.Command{Directory: directory}.Must(t, converter, "provider", "-h", "--target", target, "-s", source(t, dir))
	for _, o := range []struct {
		name string
		args []string
	}{
		{"shop.o", slices.Concat(compiler, []string{source(t, "dof/shop.c")})},
		{"first.o", slices.Concat(cxx, []string{"-DFIRST=first", source(t, "dof/more.cc")})},
		{"second.o", slices.Concat(cxx, []string{"-DFIRST=second", source(t, "dof/more.cc")})},
	} {
		path := filepath.Join(directory, o.name)
		args := slices.Concat(o.args[1:], dofFlags, []string{"-I" + directory, "-c", "-o", path})
		tools.Must(t, o.args[0], args...)
		objects = append(objects, path)
	}
	return objects
}

var (
	dofFunction = regexp.MustCompile(`^([0-9a-f]+) <(\S+)>:$`)
	dofInsn     = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(\S+)`)
	dofStub     = regexp.MustCompile(`R_\S+\s+__dtrace(enabled|)_(shop|bank_)___(\w+)`)
)

// dofCalls returns the calls of stubs in unconverted objects, as a disassembler sees them:
// each as DOF would describe the site. Of weak functions one is linked.
func dofCalls(t *testing.T, target *dofTarget, objects []string) (sites []string) {
	t.Helper()
	tools.Need(t, toolchains.LLVM("llvm-objdump"))
	weak := map[string]bool{}
	for _, object := range objects {
		function, mnemonic, start, at := "", "", uint64(0), uint64(0)
		own := map[string]bool{}
		for _, line := range tools.Lines(t, toolchains.LLVM("llvm-objdump"), "-dr", "--no-show-raw-insn", object) {
			if m := dofFunction.FindStringSubmatch(line); m != nil {
				start, function = parseHex(t, m[1]), m[2]
			} else if m := dofStub.FindStringSubmatch(line); m != nil {
				offset := at - start
				if m[1] != "" && strings.HasPrefix(mnemonic, "call") {
					offset += 3 // the nop behind xor
				}
				if weak[function] || m[1] != "" && !target.tests {
					continue
				}
				own[function] = strings.HasPrefix(function, "_Z6shared")
				sites = append(sites, fmt.Sprintf("%s:%s%s:%s+%#x", m[2], strings.ReplaceAll(m[3], "__", "-"), map[bool]string{true: " enabled"}[m[1] != ""], function, offset))
			} else if m := dofInsn.FindStringSubmatch(line); m != nil {
				at, mnemonic = parseHex(t, m[1]), m[2]
			}
		}
		for function, is := range own {
			weak[function] = weak[function] || is
		}
	}
	slices.Sort(sites)
	return sites
}

func parseHex(t *testing.T, s string) (v uint64) {
	t.Helper()
	if _, err := fmt.Sscanf(s, "%x", &v); err != nil {
		t.Fatal(s, err)
	}
	return v
}

// dofSites returns the sites in the DOF of a file, as dofCalls has them.
func dofSites(f *kerneldof.File) (sites []string) {
	for i := range f.Probes {
		p := &f.Probes[i]
		for _, off := range p.Offsets {
			sites = append(sites, fmt.Sprintf("%s:%s:%s+%#x", p.Provider, p.Name, p.Function, off))
		}
		for _, off := range p.Enabled {
			sites = append(sites, fmt.Sprintf("%s:%s enabled:%s+%#x", p.Provider, p.Name, p.Function, off))
		}
	}
	slices.Sort(sites)
	return sites
}

// readDOF reads the format of an object or an image as a kernel does.
func readDOF(t *testing.T, path string, k kerneldof.Kernel) (*kerneldof.File, *elf.File, *elf.Section) {
	t.Helper()
	f := disk.ELF(t, disk.Read(t, path))
	sec := f.Section(".SUNW_dof")
	if sec == nil || sec.Type != 0x6ffffff4 || sec.Flags&elf.SHF_ALLOC == 0 {
		t.Fatalf("%s: %+v", path, sec)
	}
	return expect.Value(kerneldof.Read(expect.Value(sec.Data())(t), k))(t, "%s: the kernel refuses it", path), f, sec
}

// checkImage checks that each site in a linked image's DOF is in the function that it
// says, and that the bytes there are those that a kernel arms.
func checkImage(t *testing.T, image string, target *dofTarget, want []string) {
	t.Helper()
	file, f, sec := readDOF(t, image, target.kernel)
	expect.Equal(t, want, dofSites(file))
	syms := expect.Value(f.Symbols())(t)
	checkListDOF(t, image, f.Machine, file, sec.Addr)
	at := map[string]bool{}
	for _, s := range syms {
		at[fmt.Sprint(s.Name, s.Value)] = true
	}
	for i := range file.Probes {
		p := &file.Probes[i]
		start := p.Start(sec.Addr, 0)
		if !at[fmt.Sprint(p.Function, start)] || !at[fmt.Sprint(p.Symbol, start)] {
			t.Errorf("%s: %s and %s are not at %#x", p.Name, p.Function, p.Symbol, start)
			continue
		}
		for _, off := range p.Offsets {
			code := codeAt(t, f, start+uint64(off), 4)
			if code[0] != 0x90 && code[0] != 0xc3 && !bytes.Equal(code, []byte{0x1f, 0x20, 0x03, 0xd5}) && !bytes.Equal(code, []byte{0xc0, 0x03, 0x5f, 0xd6}) {
				t.Errorf("%s: % x at %s+%#x", p.Name, code, p.Function, off)
			}
		}
		for _, off := range p.Enabled {
			// A kernel skips the instruction: a nop, or the xor before a return.
			code := codeAt(t, f, start+uint64(off)-3, 7)
			if !bytes.HasPrefix(code, []byte{0x48, 0x33, 0xc0, 0x90}) && !bytes.Equal(code[3:], []byte{0x48, 0x33, 0xc0, 0xc3}) {
				t.Errorf("the test of %s: % x at %s+%#x", p.Name, code, p.Function, off)
			}
		}
	}
}

func codeAt(t *testing.T, f *elf.File, addr uint64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			expect.Value(p.ReadAt(b, int64(addr-p.Vaddr)))(t)
			return b
		}
	}
	t.Fatalf("nothing is at %#x", addr)
	return nil
}

// bytesOf returns the bytes of files, by their names.
func bytesOf(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range paths {
		data := disk.Read(t, path)
		all[filepath.Base(path)] = fmt.Sprint(expect.Value(os.Stat(path))(t).ModTime().UnixNano(), string(data))
	}
	return all
}

// Each link of what -G has been at tells the kernel of each call in the objects, and of no
// more; a second -G finds the same, and changes no object.
func TestDOFLinks(t *testing.T) {
	for name, target := range dofTargets() {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			cc := []string{toolchains.Clang.Name, "--target=" + target.triplet}
			cxx := []string{toolchains.Clang.CXX, "--target=" + target.triplet, "-fno-exceptions"}
			tools.Need(t, cc[0], cxx[0])
			objects := dofObjects(t, directory, cc, cxx, target.triplet)
			want := dofCalls(t, target, objects)
			if len(want) < 7 {
				t.Fatalf("%q", want)
			}
			provider := filepath.Join(directory, "provider.o")
			args := slices.Concat([]string{"provider", "-q", "-G", "-s", source(t, "dof/shop.d"), "-o", provider}, objects)
			before := bytesOf(t, objects...)
			tools.Must(t, converter, args...)
			first := bytesOf(t, objects...)
			made := disk.Read(t, provider)
			for name := range first {
				if first[name] == before[name] || first[name][:19] != before[name][:19] {
					t.Errorf("%s is as it was, or has another time", name)
				}
			}
			expect.OK(t, os.Remove(provider))
			tools.Must(t, converter, args...)
			if again, err := os.ReadFile(provider); err != nil || !bytes.Equal(again, made) {
				t.Errorf("the second object differs: %v", err)
			}
			if !maps.Equal(first, bytesOf(t, objects...)) {
				t.Error("the second -G changes an object")
			}
			checkTold(t, provider, target)
			for _, l := range target.linkers {
				for _, flags := range [][]string{{"-static"}, {"-pie"}, {"-shared"}, {"-pie", "--gc-sections"}, {"-r"}} {
					t.Run(l.Name+strings.Join(flags, ""), func(t *testing.T) { linkDOF(t, l, flags, target, append(slices.Clone(objects), provider), want) })
				}
			}
		})
	}
}

// linkDOF links, -r twice, and looks at the image.
func linkDOF(t *testing.T, l toolchains.Linker, flags []string, target *dofTarget, objects, want []string) {
	tools.Need(t, l.Path)
	if target.kernel == kerneldof.Illumos && flags[0] != "-static" {
		t.Skip("only the linker of illumos keeps absolute addresses in what is moved")
	}
	out := filepath.Join(t.TempDir(), "out")
	link := func(flags []string, out string, objects ...string) {
		tools.Must(t, l.Path, slices.Concat([]string{"-e", "work", "-u", "first", "-u", "second", "-u", "__SUNW_dof", "-o", out}, flags, objects)...)
	}
	if flags[0] == "-r" {
		merged := out + ".o"
		tools.Must(t, l.Path, slices.Concat([]string{"-r", "-o", merged}, objects)...)
		link([]string{"-pie"}, out, merged)
	} else {
		link(flags, out, objects...)
	}
	checkImage(t, out, target, want)
}

// checkTold checks what does not depend on code.
func checkTold(t *testing.T, object string, target *dofTarget) {
	t.Helper()
	file, f, _ := readDOF(t, object, target.kernel)
	if file.Version != map[bool]byte{true: 2, false: 1}[target.tests] || !file.LP64 {
		t.Errorf("%+v", file)
	}
	private := uint32(0x01010000)
	shop := [5]uint32{0x05060500, private, private, private, 0x01010400}
	for i := range file.Probes {
		p := &file.Probes[i]
		switch {
		case p.Provider == "shop" && p.Attributes == shop, p.Provider == "bank_" && p.Attributes == [5]uint32{private, private, private, private, private}:
		default:
			t.Errorf("%s: attributes %#x", p.Provider, p.Attributes)
		}
		native, translated, mapping := []string{"int", "char *"}, []string{"int", "char *"}, []byte{0, 1}
		switch p.Name {
		case "order-placed":
		case "weighed":
			native, translated, mapping = []string{"int", "long"}, []string{"long", "int", "int"}, []byte{1, 0, 0}
		default:
			continue
		}
		if !slices.Equal(p.Native, native) || !slices.Equal(p.Translated, translated) || !bytes.Equal(p.Mapping, mapping) {
			t.Errorf("%s: %q, %q, %v", p.Name, p.Native, p.Translated, p.Mapping)
		}
	}
	osABI := map[bool]elf.OSABI{true: elf.ELFOSABI_FREEBSD, false: elf.ELFOSABI_NONE}[target.kernel == kerneldof.FreeBSD]
	expect.Equal(t, osABI, f.OSABI, "the object's system")
}

// gcc's objects of Linux, as if for illumos: gdb reads the sites, switches a test on, and
// stops at probes with the right arguments.
func TestDOFGDB(t *testing.T) {
	tools.Need(t, "gdb", "gcc", "g++", "ld.bfd")
	directory := t.TempDir()
	const triplet = "x86_64-pc-solaris2.11"
	objects := dofObjects(t, directory, []string{"gcc"}, []string{"g++"}, triplet)
	want := dofCalls(t, &dofTarget{tests: true}, objects)
	provider, prog := filepath.Join(directory, "provider.o"), filepath.Join(directory, "prog")
	tools.Must(t, converter, slices.Concat([]string{"provider", "-q", "-G", "--target", triplet, "-s", source(t, "dof/shop.d"), "-o", provider}, objects)...)
	tools.Must(t, "gcc", slices.Concat([]string{"-no-pie", "-fuse-ld=bfd", "-o", prog, source(t, "dof/main.c")}, objects, []string{provider})...)
	checkImage(t, prog, &dofTarget{kernel: kerneldof.Illumos}, want)
	expect.Equal(t, "192 7 9\n", tools.Output(t, prog), "the program prints")
	out := tools.GDB(t, "gdb", prog, "info probes dtrace\nbreak main\nrun\nenable probe shop wide\ninfo probes dtrace\n"+
		"break -probe-dtrace shop:order-placed\ncommands\nsilent\nprintf \"> %d %s %d\\n\", $_probe_arg0, (char *)$_probe_arg1, $_probe_argc\ncontinue\nend\n"+
		"break -probe-dtrace shop:empty\ncommands\nsilent\nprintf \"> empty\\n\"\ncontinue\nend\ncontinue\n")
	for _, want := range []string{"> 0 milk 2", "> 8 milk 2", "90192 7 9"} {
		expect.Contains(t, out, want)
	}
	expect.Equal(t, 3, strings.Count(out, "> empty"), "times empty: %s", out)
	// What gdb shows once is a probe and its tests.
	listed := regexp.MustCompile(`(?m)^dtrace +(\S+) +(\S+) +(0x[0-9a-f]+) (no|yes|always)`).FindAllStringSubmatch(out, -1)
	states := map[string][]string{}
	for _, l := range listed {
		states[l[1]+":"+l[2]] = append(states[l[1]+":"+l[2]], l[4])
	}
	if diff := cmp.Diff([]string{"no", "yes"}, states["shop:wide"]); diff != "" || len(states) < 5 {
		t.Errorf("%v: %s", states, out)
	}
}

// The code of examples/drti, which is put into the object, registers what is told: two
// objects of one program have theirs each. The kernel is played by the program's own ioctl.
func TestDrti(t *testing.T) {
	tools.Need(t, "gcc", "g++", "ld.bfd")
	directory := t.TempDir()
	const triplet = dofTriplet
	objects := dofObjects(t, directory, []string{"gcc"}, []string{"g++"}, triplet)
	drti := filepath.Join(directory, "drti.o")
	tools.Must(t, "gcc", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-DDRTI_FREEBSD", "-c", "-o", drti, tools.Root("examples", "drti", "drti.c"))
	var made []string
	for i, parts := range [][]string{objects[:1], objects[1:]} {
		out := filepath.Join(directory, fmt.Sprintf("provider%d.o", i))
		tools.Must(t, converter, slices.Concat([]string{"provider", "-G", "--target", triplet, "--drti", drti, "-s", source(t, "dof/shop.d"), "-o", out}, parts)...)
		made = append(made, out)
	}
	library := filepath.Join(directory, "libmore.so")
	tools.Must(t, "gcc", "-shared", "-o", library, objects[1], objects[2], made[1])
	all, main := append(slices.Clone(objects), made...), []string{source(t, "dof/main.c"), source(t, "dof/ioctl.c")}
	for _, c := range []struct {
		args    []string
		modules []string
	}{
		{append([]string{"-no-pie"}, all...), []string{"prog", "prog"}},
		{append([]string{"-pie"}, all...), []string{"prog", "prog"}},
		{append([]string{"-pie", "-fuse-ld=gold"}, all...), []string{"prog", "prog"}},
		{[]string{"-pie", objects[0], made[0], library}, []string{"libmore.so", "prog"}},
	} {
		prog := filepath.Join(directory, "prog")
		tools.Must(t, "gcc", slices.Concat([]string{"-o", prog, "-rdynamic", "-Wl,-rpath," + directory}, main, c.args)...)
		want := "192 7 9\n" + strings.Repeat("remove 0x80047a02 7\n", 2)
		for i := range c.modules {
			want = "add 0xc0587a03 '" + c.modules[1-i] + "' 1 DOF\n" + want
		}
		got := tools.Command{Env: []string{"DTRACE_DOF_INIT_DEVNAME=/dev/null"}}.Output(t, prog)
		expect.Equal(t, want, got, "%q", c.args)
		expect.Equal(t, "192 7 9\n", (tools.Command{Env: []string{"DTRACE_DOF_INIT_DISABLE=1"}}).Output(t, prog), "%q, disabled", c.args)
	}
}

// checkListDOF looks at the listing of an image whose format is at an address, and at that
// of the image without symbols: each site is disabled, where the kernel looks for it.
func checkListDOF(t *testing.T, image string, m elf.Machine, file *kerneldof.File, addr uint64) {
	t.Helper()
	strip := map[elf.Machine]string{elf.EM_X86_64: toolchains.AMD64.Tool("strip"), elf.EM_AARCH64: toolchains.ARM64.Tool("strip")}[m]
	tools.Need(t, strip)
	// A compiler's clones are listed by the name of the source, while their symbols are there.
	var want, wantStripped []string
	for i := range file.Probes {
		p := &file.Probes[i]
		source, _, _ := strings.Cut(p.Function, ".")
		for enabled, offsets := range map[string][]uint32{"": p.Offsets, " enabled": p.Enabled} {
			for _, off := range offsets {
				behind := fmt.Sprintf(":%s%s at %#x", p.Name, enabled, p.Start(addr, 0)+uint64(off))
				want = append(want, p.Provider+":"+source+behind)
				wantStripped = append(wantStripped, p.Provider+":"+p.Function+behind)
			}
		}
	}
	stripped := filepath.Join(t.TempDir(), "stripped")
	tools.Must(t, strip, "--strip-all", "-o", stripped, image)
	for path, want := range map[string][]string{image: want, stripped: wantStripped} {
		slices.Sort(want)
		expect.Equal(t, want, listedDOF(t, path), "%s", filepath.Base(path))
	}
}

// listedDOF returns the sites of a listing.
func listedDOF(t *testing.T, image string) (sites []string) {
	t.Helper()
	for _, p := range listjson.Probes(t, tools.Output(t, converter, "list", "--json", image)) {
		if want := map[string]string{"weighed": "[{long } {int } {int }]", "order-placed": "[{int } {char * }]"}[p.Name]; want != "" && fmt.Sprint(p.Arguments) != want {
			t.Errorf("%s: arguments %v, want %s", p.Name, p.Arguments, want)
		}
		for _, s := range p.Sites {
			expect.Equal(t, "disabled", s.State, "%s at %s", p.Name, s.Address)
			enabled := ""
			if strings.HasPrefix(s.Kind, "isenabled") {
				enabled = " enabled"
			}
			sites = append(sites, fmt.Sprintf("%s:%s:%s%s at %s", p.Provider, p.Function, p.Name, enabled, s.Address))
		}
	}
	slices.Sort(sites)
	return sites
}
