package resolve_test

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
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

// An image without section headers has its segments: unwind tables are found
// through them, and the loader's symbols are for the caller to find.
func TestNoSectionHeaders(t *testing.T) {
	for _, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			tools.Need(t, m.Tools("gcc", "nm")...)
			objects := compile(t, m.Tool("gcc"), []string{"-O2", "-fPIC", "-fasynchronous-unwind-tables"}, "program.c", "other.c")
			image := filepath.Join(t.TempDir(), "image")
			tools.Output(t, m.Tool("gcc"), append([]string{"-shared", "-o", image}, objects...)...)
			functions := listFunctions(t, m, image)
			o := withoutSections(t, image)
			without := expect.Value(resolve.New(o, nowhere))(t)
			for _, f := range functions {
				if g, ok := without.Lookup(0, f.start); slices.Contains(exported, f.name) && !strings.HasPrefix(f.name, "asm") &&
					(!ok || !isUnnamed(f, g, unnamedSource(m))) {
					t.Errorf("%s at %#x is %+v", f.name, f.start, g)
				}
			}
			opts := nowhere
			opts.Dynsym = loaderSymbols(t, image, o)
			table := expect.Value(resolve.New(o, opts))(t)
			// Where there are descriptors, only the headers tell.
			checkUnnamed(t, functions, table, unnamedSource(m), machines.Lookup(o.ABI()).Traits().Descriptors == "")
		})
	}
}

// withoutSections opens a copy of an image that has no section headers.
func withoutSections(t *testing.T, image string) *elfreloc.Object {
	t.Helper()
	data := disk.Read(t, image)
	shoff, shnum := data[40:48], data[60:64]
	if elf.Class(data[elf.EI_CLASS]) == elf.ELFCLASS32 {
		shoff, shnum = data[32:36], data[48:52]
	}
	clear(shoff) // e_shoff
	clear(shnum) // e_shnum, e_shstrndx
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), image)
	if err != nil || len(o.Sections) > 0 {
		t.Fatalf("%d sections, %v", len(o.Sections), err)
	}
	return o
}

func loaderSymbols(t *testing.T, image string, o *elfreloc.Object) *elfreloc.Symbols {
	t.Helper()
	f := disk.OpenELF(t, image)
	entries := expect.Value(f.Section(".dynsym").Data())(t)
	return expect.Value(o.MakeSymbols(entries, expect.Value(f.Section(".dynstr").Data())(t)))(t)
}

// What is wrong with a debug file or with unwind tables is said, and the rest is
// used.
func TestWarnings(t *testing.T) {
	tools.Need(t, "gcc", "strip", "objcopy")
	objects := compile(t, "gcc", []string{"-O2", "-fPIC"}, "program.c", "other.c")
	directory := t.TempDir()
	image := filepath.Join(directory, "image")
	tools.Output(t, "gcc", "-shared", "-Wl,--build-id", "-o", image, objects[0], objects[1])
	debug := installByID(t, toolchains.AMD64, image, directory)
	tools.Output(t, "strip", image)
	opts := resolve.Options{DebugRoots: []string{directory}}
	for _, c := range []struct {
		name   string
		damage func(image, debug []byte)
		want   string
		from   resolve.Source
	}{
		{"nothing", func(_, _ []byte) {}, "", resolve.Debug},
		{"debug file", func(_, debug []byte) { clear(debug[:4]) }, "debug file ", resolve.Dynsym},
		{"symbols of the debug file", func(_, debug []byte) { fill(t, debug, ".symtab") }, "debug file ", resolve.Dynsym},
		{"unwind tables", func(image, _ []byte) { fill(t, image, ".eh_frame") }, "image: .eh_frame+0x0: ", resolve.Debug},
	} {
		t.Run(c.name, func(t *testing.T) {
			imageData, debugData := disk.Read(t, image), disk.Read(t, debug)
			defer os.WriteFile(debug, debugData, 0o666)
			damaged := bytes.Clone(debugData)
			c.damage(imageData, damaged)
			disk.Write(t, debug, damaged)
			var warnings []string
			opts := opts
			opts.Warn = func(err error) { warnings = append(warnings, err.Error()) }
			o := expect.Value(elfreloc.Open(bytes.NewReader(imageData), int64(len(imageData)), "image"))(t)
			table := expect.Value(resolve.New(o, opts))(t)
			table.Lookup(0, 0) // which no symbol holds
			if got := strings.Join(warnings, "\n"); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
			entry := dynamicAddress(t, imageData, "entry")
			if f, ok := table.Lookup(0, entry); !ok || f.Raw != "entry" || f.From != c.from {
				t.Errorf("entry is %+v", f)
			}
		})
	}
}

// fill overwrites a section with bytes that mean nothing anywhere.
func fill(t *testing.T, data []byte, name string) {
	t.Helper()
	s := disk.ELF(t, data).Section(name)
	for i := range data[s.Offset:][:s.Size] {
		data[s.Offset:][i] = 0x7f
	}
}

func dynamicAddress(t *testing.T, data []byte, name string) uint64 {
	t.Helper()
	for _, s := range expect.Value(disk.ELF(t, data).DynamicSymbols())(t) {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("no dynamic symbol %s", name)
	return 0
}
