package image_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// mode is a kind of image: the flags of a compiler, of the final link, and
// whether it is a library, and whether it uses one.
type mode struct {
	name           string
	compile, link  []string
	library, outer bool
}

var modes = []mode{
	{"exe", []string{"-fno-pie"}, []string{"-no-pie"}, false, false},
	{"pie", []string{"-fPIE"}, []string{"-pie"}, false, true},
	{"static", []string{"-fno-pie"}, []string{"-static", "-no-pie"}, false, false},
	{"static-pie", []string{"-fPIE"}, []string{"-static-pie"}, false, false},
	{"shared", []string{"-fPIC"}, []string{"-shared"}, true, true},
	{"symbolic", []string{"-fPIC"}, []string{"-shared", "-Wl,-Bsymbolic"}, true, true},
	{"relr-pie", []string{"-fPIE"}, []string{"-pie", "-Wl,-z,pack-relative-relocs"}, false, true},
	{"relr-static-pie", []string{"-fPIE"}, []string{"-static-pie", "-Wl,-z,pack-relative-relocs"}, false, false},
}

// needs are the features that a mode takes.
var needs = map[string][]toolchains.Feature{
	"static":          {toolchains.Static},
	"static-pie":      {toolchains.StaticPIE},
	"relr-pie":        {toolchains.RELR, toolchains.DynamicRELR},
	"relr-static-pie": {toolchains.RELR, toolchains.StaticPIE},
}

// TestWords compares what images say of fields with what a loaded program finds
// in them.
func TestWords(t *testing.T) {
	all := product.New("machine", "linker", "mode")
	for _, machine := range toolchains.Machines {
		for _, linker := range machine.Newest() {
			for _, m := range modes {
				add := all.Add
				if machine == toolchains.AMD64 && linker.Name == "bfd" && m.name == "relr-pie" {
					add = all.Always
				}
				add(machine.Name+"/"+linker.Path+"/"+m.name, []string{machine.Name, linker.Name, m.name}, func(t *testing.T) {
					t.Parallel()
					testWords(t, machine, linker, m)
				})
			}
		}
	}
	all.Run(t)
}

func testWords(t *testing.T, machine *toolchains.Machine, linker toolchains.Linker, m mode) {
	machine.Need(t)
	tools.Need(t, linker.Path)
	for _, f := range append([]toolchains.Feature{toolchains.Distances}, needs[m.name]...) {
		if why := machine.Cannot(linker, f); why != "" {
			t.Skip(why)
		}
	}
	path, program := build(t, machine, linker, m)
	if strings.HasPrefix(m.name, "relr") && !hasRELR(t, path) {
		if linker.Name == "bfd" && !machine.Native() {
			t.Skip("bfd makes no SHT_RELR for this machine")
		}
		t.Fatal("no SHT_RELR")
	}
	command := machine.Command(program)
	checkWords(t, open(t, path), uint64(tools.OpenELF(t, path).Encoding.Word()), tools.Output(t, command[0], command[1:]...))
	checkStripped(t, open(t, path), open(t, withoutSections(t, path)))
}

// hasRELR reports whether a test is about what its name says.
func hasRELR(t *testing.T, path string) bool {
	t.Helper()
	const shtRELR = 19
	for _, s := range disk.OpenELF(t, path).Sections {
		if s.Type == shtRELR && s.Size > 0 {
			return true
		}
	}
	return false
}

// withoutSections makes a copy of a file as llvm-strip --strip-sections does,
// which refuses what bfd links statically: the ELF header names no sections.
func withoutSections(t *testing.T, path string) string {
	t.Helper()
	data := disk.Read(t, path)
	shoff, shnum := data[40:48], data[60:64]
	if elf.Class(data[elf.EI_CLASS]) == elf.ELFCLASS32 {
		shoff, shnum = data[32:36], data[48:52]
	}
	clear(shoff) // e_shoff
	clear(shnum) // e_shnum, e_shstrndx
	path = filepath.Join(t.TempDir(), "stripped")
	expect.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

// build makes an image, and the program that prints its fields.
func build(t *testing.T, machine *toolchains.Machine, linker toolchains.Linker, m mode) (path, program string) {
	t.Helper()
	directory, cc, ld := t.TempDir(), machine.Tool("gcc"), "-B"+tools.Driver(t, linker.Path)
	path, other := filepath.Join(directory, "image"), filepath.Join(directory, "libelsewhere.so")
	args := append([]string{ld, "-O", "-o", path, source(t, "words.c")}, append(m.compile, m.link...)...)
	if m.outer {
		tools.Output(t, cc, "-fPIC", "-shared", ld, "-o", other, source(t, "elsewhere.c"))
		args = append(args, "-DELSEWHERE", other, "-Wl,-rpath,"+directory)
	}
	if !m.library {
		tools.Output(t, cc, append(args, source(t, "main.c"))...)
		return path, path
	}
	tools.Output(t, cc, args...)
	program = filepath.Join(directory, "program")
	tools.Output(t, cc, ld, "-o", program, source(t, "main.c"), path, other, "-Wl,-rpath,"+directory)
	return path, program
}

// names are the symbols of the fields of words.c, in order; "" where there need
// not be one, and "0" for a number.
var names = map[string][]string{
	"sdt_instances_set": {"sdt_own", "sdt_local", "a_static_function", "", "0", "0", "", "0"},
	"outer_set":         {"sdt_elsewhere", "sdt_elsewhere", "sdt_own", "a_function"},
	"sdt_instances_rel": {"inside", ""},
}

func checkWords(t *testing.T, im image.Image, word uint64, out string) {
	t.Helper()
	bias, at, done := uint64(0), map[string]uint64{}, 0
	for line := range strings.Lines(out) {
		var section string
		var value uint64
		expect.Value(fmt.Sscanf(line, "%s %v", &section, &value))(t, "%q", line)
		if section == "header" {
			bias = value - header(t, im)
			continue
		}
		ranges, err := im.Arrays(section)
		if err != nil || len(ranges) != 1 {
			t.Fatalf("%s: %v, %v", section, ranges, err)
		}
		expect.Equal(t, section != "sdt_instances_rel", ranges[0].Writable, "%s: Writable", section)
		read, size := im.Word, word
		if section == "sdt_instances_rel" {
			read, size = im.Distance, 4
		}
		n := at[section]
		at[section]++
		done++
		ref, err := read(ranges[0].Start.Add(n * size))
		if err != nil {
			t.Errorf("%s %d: %v", section, n, err)
			continue
		}
		checkRef(t, im, fmt.Sprintf("%s %d", section, n), ref, names[section][n], value, bias)
	}
	if done < 10 {
		t.Errorf("%d fields in %q", done, out)
	}
}

// checkRef compares a field with the value in memory and the symbol there.
func checkRef(t *testing.T, im image.Image, what string, ref image.Ref, name string, value, bias uint64) {
	t.Helper()
	switch {
	case ref.Undefined && ref.Symbol == name, ref.Undefined && value == 0:
		return // elsewhere, or nowhere
	case name == "0":
		if ref.Offset != value || ref.Null() != (value == 0) {
			t.Errorf("%s: %+v, want the number %#x", what, ref, value)
		}
		return
	case ref.Undefined || ref.Offset+bias != value:
		t.Errorf("%s: %+v, want %#x (%s) at load base %#x", what, ref, value-bias, name, bias)
		return
	}
	all, err := im.SymbolsAt(ref.Addr)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if name != "" && ref.Symbol != name && !contains(all, name) {
		t.Errorf("%s: %+v is %q, want %s", what, ref, all, name)
	}
	expect.Equal(t, strings.HasSuffix(name, "function") && im.Machine().Traits().Descriptors == "", im.Executable(ref.Addr), "%s: %s: Executable", what, name)
}

func contains(all []string, name string) bool {
	for _, s := range all {
		if s == name {
			return true
		}
	}
	return false
}

// header returns the address that the ELF header was linked for, by debug/elf.
func header(t *testing.T, im image.Image) uint64 {
	t.Helper()
	for _, p := range disk.OpenELF(t, im.Name()).Progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 {
			return p.Vaddr
		}
	}
	t.Fatal("the ELF header is not loaded")
	return 0
}

// checkStripped compares an image without section headers with what it was made
// of: the same words at the same addresses.
func checkStripped(t *testing.T, whole, stripped image.Image) {
	t.Helper()
	for section := range names {
		for _, r := range expect.Value(whole.Arrays(section))(t) {
			for off := uint64(0); off < r.Size; off += 8 {
				want, err1 := whole.Word(r.Start.Add(off))
				got, err2 := stripped.Word(r.Start.Add(off))
				if err1 != nil || err2 != nil || got != want {
					t.Errorf("%s+%#x: %+v, %v, want %+v, %v", section, off, got, err2, want, err1)
				}
				if got.Symbol != "" && !got.Undefined {
					if all, err := stripped.SymbolsAt(got.Addr); err != nil || !contains(all, got.Symbol) && section == "outer_set" && off != 8 {
						t.Errorf("%s+%#x: %q, %v, want %s", section, off, all, err, got.Symbol)
					}
				}
			}
		}
	}
}

// wideHash is a machine with entries of DT_HASH of 8 bytes.
type wideHash struct{ arch.Machine }

func (m wideHash) Traits() *arch.Traits {
	t := *m.Machine.Traits()
	t.WideHash = true
	return &t
}

// DT_HASH has a chain entry for each symbol, so its second entry is their number.
func TestSymbolsAreCountedByTheirHashTable(t *testing.T) {
	for _, c := range []struct {
		wide  bool
		table []uint32
		want  int // arrays that the symbols bound
	}{
		{false, []uint32{1, 4}, 1},
		{false, []uint32{1, 3}, 0},
		{true, []uint32{1, 0, 4, 0}, 1},
		{true, []uint32{1, 0, 3, 0}, 0},
		{true, []uint32{1, 4, 0, 0}, 1},
		{true, []uint32{1, 3, 0, 0}, 0},
	} {
		m := newTiny()
		m.dynamic[5].Tag, m.gnuHash = int64(elf.DT_HASH), c.table
		data := m.bytes()
		o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "tiny.so"))(t)
		machine := machines.Lookup(o.ABI())
		if c.wide {
			machine = wideHash{machine}
		}
		im := expect.Value(image.Open(o, machine))(t)
		expect.Equal(t, c.want, len(expect.Value(im.Arrays("set"))(t)), "%v", c.table)
	}
}

func source(t testing.TB, name string) string {
	t.Helper()
	return expect.Value(filepath.Abs(filepath.Join("testdata", name)))(t)
}

func open(t testing.TB, path string) image.Image {
	t.Helper()
	return expect.Value(openErr(tools.OpenELF(t, path)))(t)
}

func openErr(o *elfreloc.Object) (image.Image, error) {
	return image.Open(o, machines.Lookup(o.ABI()))
}

// library builds libwords.so, in a directory of its own.
func library(t *testing.T, flags ...string) string {
	t.Helper()
	tools.Need(t, "gcc")
	path := filepath.Join(t.TempDir(), "libwords.so")
	tools.Output(t, "gcc", append([]string{"-O", "-fPIC", "-shared", "-o", path, source(t, "words.c"), "-Wl,--build-id"}, flags...)...)
	return path
}
