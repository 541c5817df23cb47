package resolve_test

import (
	"debug/elf"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

// addressOf returns where a symbol stands, as a place to look up, by its name and,
// where several have that, the source file.
func addressOf(t testing.TB, path, name string) (section int, off uint64) {
	t.Helper()
	o := tools.OpenELF(t, path)
	syms := expect.Value(o.Symbols())(t)
	for i := range syms.Len() {
		if s := syms.At(i); s.Name == name && s.Defined() {
			if o.Type == elf.ET_REL {
				section = s.Section
			}
			return section, s.Value
		}
	}
	t.Fatalf("%s: no symbol %q", path, name)
	return 0, 0
}

// Local functions of one name are different functions, told apart by their
// source files.
func TestEqualNames(t *testing.T) {
	tools.Need(t, "gcc")
	objects := compile(t, "gcc", []string{"-O2", "-fPIC"}, "program.c", "other.c")
	merged := filepath.Join(t.TempDir(), "merged.o")
	tools.Output(t, "gcc", "-r", "-nostdlib", "-o", merged, objects[0], objects[1])
	image := filepath.Join(t.TempDir(), "image")
	tools.Output(t, "gcc", "-o", image, objects[0], objects[1])
	for _, path := range []string{merged, image} {
		o := tools.OpenELF(t, path)
		table := tableOf(t, path, nowhere)
		syms := expect.Value(o.Symbols())(t)
		var files []string
		for i := range syms.Len() {
			s := syms.At(i)
			if s.Name != "helper" {
				continue
			}
			if o.Type != elf.ET_REL {
				s.Section = 0
			}
			f, ok := table.Lookup(s.Section, s.Value+1)
			if !ok || f.Symbol != i || f.Name != "helper" {
				t.Errorf("%s: symbol %d is %+v", path, i, f)
			}
			files = append(files, table.SourceFile(f))
		}
		expect.Equal(t, "program.c other.c", strings.Join(files, " "), "%s: the files of the helpers", path)
		section, start := addressOf(t, path, "entry")
		if f, _ := table.Lookup(section, start); table.SourceFile(f) != "" {
			t.Errorf("entry is of %s", table.SourceFile(f))
		}
		section, start = addressOf(t, path, "divided.cold")
		if f, _ := table.Lookup(section, start); f.Name != "divided" {
			t.Errorf("divided.cold is %+v", f)
		}
	}
}

// clang's unique names.
func TestUniqueNames(t *testing.T) {
	tools.Need(t, toolchains.LLVM("clang"))
	object := compile(t, toolchains.LLVM("clang"), []string{"-O2", "-funique-internal-linkage-names"}, "other.c")[0]
	o := tools.OpenELF(t, object)
	table := tableOf(t, object, nowhere)
	syms := expect.Value(o.Symbols())(t)
	for i := range syms.Len() {
		s := syms.At(i)
		if !strings.Contains(s.Name, ".__uniq.") {
			continue
		}
		if f, ok := table.Lookup(s.Section, s.Value); !ok || f.Name != "helper" || f.Raw != s.Name {
			t.Errorf("%s is %+v", s.Name, f)
		}
		return
	}
	t.Error("clang makes no unique name")
}

// The linker keeps riscv64's local labels, since it moves them: none of them, nor
// a mapping symbol, is ever a function. Other assemblers keep none.
func TestLocalLabels(t *testing.T) {
	for _, m := range toolchains.Foreign() {
		if m == toolchains.I386 {
			continue // it has neither
		}
		gcc := m.Tool("gcc")
		tools.Need(t, gcc)
		object := compile(t, gcc, []string{"-O2"}, "program.c")[0]
		o, table := tools.OpenELF(t, object), tableOf(t, object, nowhere)
		syms := expect.Value(o.Symbols())(t)
		seen := 0
		for i := range syms.Len() {
			s := syms.At(i)
			if !strings.HasPrefix(s.Name, ".L") && !strings.HasPrefix(s.Name, "$") || s.Section <= 0 || !o.Sections[s.Section].Executable() {
				continue
			}
			seen++
			if f, ok := table.Lookup(s.Section, s.Value); ok && f.Symbol == i {
				t.Errorf("%s: %q is a function", gcc, s.Name)
			}
		}
		expect.Equal(t, machines.Lookup(o.ABI()).Traits().Mapping != "", seen >= 2, "%s: has labels", gcc)
	}
}

// The symbols of ppc64's ELFv1 stand for descriptors in .opd, which relocations
// fill in.
func TestDescriptorsInAnObject(t *testing.T) {
	o := objects.Open(t, objects.Read(t, "calls.ppc64-gcc12-O2.o"))
	table := expect.Value(resolve.New(o, nowhere))(t)
	opd := objects.Section(t, o, ".opd")
	syms := expect.Value(o.Symbols())(t)
	found := make(map[int]bool)
	for sec := range o.Sections {
		for off := range o.Sections[sec].Size {
			f, ok := table.Lookup(sec, off)
			if !ok {
				continue
			}
			found[f.Symbol] = true
			if off-f.Start >= f.Size || !o.Sections[sec].Executable() {
				t.Errorf("%s+%#x is in %+v", o.Sections[sec].Name, off, f)
			}
		}
	}
	for i := range syms.Len() {
		if s := syms.At(i); s.Type == elf.STT_FUNC && s.Section == opd && !found[i] {
			t.Errorf("%s is nowhere", s.Name)
		}
	}
	if len(found) < 5 {
		t.Errorf("%d functions", len(found))
	}
	if f, ok := table.Lookup(opd, 0); ok {
		t.Errorf("a descriptor is in %+v", f)
	}
}

// In a linked image the descriptors hold addresses, or the loader's relocations
// do. nm -S --synthetic shows where the code is: it names it with a dot.
func TestDescriptorsInImages(t *testing.T) {
	m := toolchains.PPC64
	tools.Need(t, m.Tools("gcc", "nm", "addr2line", "strip")...)
	objects := compile(t, m.Tool("gcc"), []string{"-O2", "-fPIC", "-DLIBRARY"}, "descriptors.c")
	for kind, flags := range map[string][]string{"exe": {"-no-pie"}, "pie": {"-pie"}, "shared": {"-shared"}} {
		t.Run(kind, func(t *testing.T) {
			image := filepath.Join(t.TempDir(), "image")
			tools.Output(t, m.Tool("gcc"), append(append([]string{"-nostdlib", "-o", image, "-Wl,-e,entry"}, flags...), objects...)...)
			table := tableOf(t, image, nowhere)
			code := make(map[string]uint64)
			for _, line := range strings.Split(tools.Output(t, m.Tool("nm"), "--synthetic", image), "\n") {
				if columns := strings.Fields(line); len(columns) == 3 && strings.HasPrefix(columns[2], ".") {
					code[columns[2][1:]] = parseHex(t, columns[0])
				}
			}
			for _, name := range []string{"entry", "exported", "local"} {
				if f, ok := table.Lookup(0, code[name]); !ok || f.Name != name || f.Start != code[name] || f.Size == 0 {
					t.Errorf("%#x is %+v, want %s", code[name], f, name)
				}
			}
			tools.Output(t, m.Tool("strip"), image)
			table = tableOf(t, image, nowhere)
			if f, ok := table.Lookup(0, code["local"]); !ok || f.From != resolve.EhFrame {
				t.Errorf("%#x is %+v without symbols", code["local"], f)
			}
			if f, _ := table.Lookup(0, code["exported"]); kind == "shared" && f.Raw != "exported" {
				t.Errorf("%#x is %+v by .dynsym", code["exported"], f)
			}
		})
	}
}
