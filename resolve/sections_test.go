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

// An unsized function of .dynsym holds no more than its unwind table says, or up
// to where the next one begins: what follows may be static.
func TestUnsizedDynamicFunctions(t *testing.T) {
	tools.Need(t, "gcc", "strip")
	image := filepath.Join(t.TempDir(), "image")
	tools.Output(t, "gcc", "-shared", "-nostdlib", "-o", image, source("unsized.S"))
	names := []string{"described", "static_one", "plain", "static_two", "last"}
	starts := make(map[string]uint64)
	for _, name := range names {
		_, starts[name] = addressOf(t, image, name)
	}
	tools.Output(t, "strip", image)
	table := tableOf(t, image, nowhere)
	for _, c := range []struct {
		symbol string
		off    uint64
		want   string
	}{
		{"described", 0, "described+0x0"}, {"described", 3, "described+0x3"}, {"described", 4, ""},
		{"static_one", 0, "sub_"}, {"static_one", 3, "sub_"},
		{"plain", 0, "plain+0x0"}, {"plain", 7, "plain+0x7"},
		{"static_two", 0, "sub_"}, {"static_two", 4, ""},
		{"last", 0, "last+0x0"}, {"last", 3, "last+0x3"}, {"last", 4096, ""},
	} {
		got := table.Place(0, starts[c.symbol]+c.off)
		if got != c.want && (c.want != "sub_" || !strings.HasPrefix(got, "sub_")) {
			t.Errorf("%s+%#x is %q, want %q", c.symbol, c.off, got, c.want)
		}
	}
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
