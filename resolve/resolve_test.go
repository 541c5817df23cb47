package resolve_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/failing"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

// table makes the table of an object whose symbols are those given. Their
// Section counts code sections of 4 KiB each, from 1; 3 stands for data.
func table(t *testing.T, symbols ...elfreloc.Symbol) (*resolve.Table, [4]int) {
	t.Helper()
	data := objects.Read(t, "none.amd64-gcc12-O2.o")
	e := expect.Value(objects.Open(t, data).Edit())(t)
	var sections [4]int
	for i := 1; i <= 3; i++ {
		flags := elf.SHF_ALLOC | elf.SHF_EXECINSTR
		if i == 3 {
			flags = elf.SHF_ALLOC
		}
		sections[i] = e.AddSection(elfreloc.NewSection{Name: "new", Type: elf.SHT_PROGBITS, Flags: flags, Align: 1, Data: make([]byte, 4096)})
	}
	for _, s := range symbols {
		if s.Section > 0 {
			s.Section = sections[s.Section]
		}
		e.AddSymbol(s)
	}
	return expect.Value(resolve.New(objects.Open(t, objects.Save(t, e, data)), resolve.Options{}))(t), sections
}

func fn(name string, section int, start, size uint64) elfreloc.Symbol {
	return elfreloc.Symbol{Name: name, Bind: elf.STB_GLOBAL, Type: elf.STT_FUNC, Section: section, Value: start, Size: size}
}

func with(s elfreloc.Symbol, change func(*elfreloc.Symbol)) elfreloc.Symbol {
	change(&s)
	return s
}

func local(s *elfreloc.Symbol)  { s.Bind = elf.STB_LOCAL }
func weak(s *elfreloc.Symbol)   { s.Bind = elf.STB_WEAK }
func noType(s *elfreloc.Symbol) { s.Type = elf.STT_NOTYPE }
func object(s *elfreloc.Symbol) { s.Type = elf.STT_OBJECT }
func ifunc(s *elfreloc.Symbol)  { s.Type = elf.STT_GNU_IFUNC }

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name    string
		symbols []elfreloc.Symbol
		want    map[uint64]string // places in section 1
	}{
		{"nothing", nil, map[uint64]string{0: "", 5: "", 1 << 63: ""}},
		{"one function", []elfreloc.Symbol{fn("f", 1, 16, 8)},
			map[uint64]string{0: "", 15: "", 16: "f+0x0", 23: "f+0x7", 24: "", ^uint64(0): ""}},
		{"a gap between functions", []elfreloc.Symbol{fn("f", 1, 0, 8), fn("g", 1, 16, 8)},
			map[uint64]string{7: "f+0x7", 8: "", 15: "", 16: "g+0x0"}},
		{"of unknown size up to the next", []elfreloc.Symbol{fn("f", 1, 0, 0), fn("g", 1, 16, 8)},
			map[uint64]string{0: "f+0x0", 15: "f+0xf", 16: "g+0x0", 24: ""}},
		{"the last of unknown size", []elfreloc.Symbol{fn("f", 1, 16, 0)}, map[uint64]string{15: "", 16: "f+0x0", 4000: "f+0xf90"}},
		{"nested", []elfreloc.Symbol{fn("outer", 1, 0, 64), fn("inner", 1, 16, 16), fn("innermost", 1, 20, 4)},
			map[uint64]string{15: "outer+0xf", 16: "inner+0x0", 20: "innermost+0x0", 24: "inner+0x8", 31: "inner+0xf", 32: "outer+0x20", 63: "outer+0x3f", 64: ""}},
		{"overlapping", []elfreloc.Symbol{fn("f", 1, 0, 20), fn("g", 1, 16, 16)}, map[uint64]string{15: "f+0xf", 16: "g+0x0", 19: "g+0x3", 31: "g+0xf"}},
		{"two nested one after the other", []elfreloc.Symbol{fn("outer", 1, 0, 64), fn("a", 1, 8, 8), fn("b", 1, 24, 8)},
			map[uint64]string{16: "outer+0x10", 32: "outer+0x20"}},
		{"aliases: a sized one", []elfreloc.Symbol{fn("a", 1, 0, 0), fn("b", 1, 0, 8)}, map[uint64]string{4: "b+0x4", 8: ""}},
		{"aliases: a typed one", []elfreloc.Symbol{with(fn("a", 1, 0, 8), noType), fn("b", 1, 0, 8)}, map[uint64]string{4: "b+0x4"}},
		{"aliases: a sized typeless before an unsized function", []elfreloc.Symbol{fn("a", 1, 0, 0), with(fn("b", 1, 0, 8), noType)}, map[uint64]string{4: "b+0x4"}},
		{"aliases: global, weak, local", []elfreloc.Symbol{with(fn("a", 1, 0, 8), local), with(fn("b", 1, 0, 8), weak), fn("c", 1, 0, 8)}, map[uint64]string{4: "c+0x4"}},
		{"aliases: weak before local", []elfreloc.Symbol{with(fn("a", 1, 0, 8), local), with(fn("b", 1, 0, 8), weak)}, map[uint64]string{4: "b+0x4"}},
		{"aliases: by name", []elfreloc.Symbol{fn("b", 1, 0, 8), fn("a", 1, 0, 8)}, map[uint64]string{4: "a+0x4"}},
		{"mapping symbols and local labels", []elfreloc.Symbol{
			fn("f", 1, 0, 64), with(fn("$x", 1, 8, 0), noType), with(fn("$d.1", 1, 16, 0), noType), with(fn(".L5", 1, 24, 0), noType),
			with(fn(".Lsdt_0123_1", 1, 32, 0), noType),
		}, map[uint64]string{8: "f+0x8", 16: "f+0x10", 24: "f+0x18", 32: "f+0x20"}},
		{"assembly without types", []elfreloc.Symbol{with(fn("entry", 1, 0, 0), noType)}, map[uint64]string{4: "entry+0x4"}},
		{"indirect functions", []elfreloc.Symbol{with(fn("f", 1, 0, 8), ifunc)}, map[uint64]string{4: "f+0x4"}},
		{"objects, absolute and undefined symbols", []elfreloc.Symbol{
			with(fn("o", 1, 0, 8), object), fn("u", 0, 0, 8), fn("abs", elfreloc.SectionAbs, 0, 8), fn("", 1, 0, 8),
		}, map[uint64]string{4: ""}},
		{"a function up to the end of its section", []elfreloc.Symbol{fn("f", 1, 4088, 8)}, map[uint64]string{4095: "f+0x7", 4096: "", ^uint64(0): ""}},
		{"functions beyond the section", []elfreloc.Symbol{fn("f", 1, ^uint64(0)-7, 8), fn("g", 1, 4096, 8), fn("h", 1, 4092, 1<<40)},
			map[uint64]string{4095: "h+0x3", 4096: "", ^uint64(0): ""}},
		{"a label in a sized function", []elfreloc.Symbol{fn("f", 1, 0, 16), with(fn("label", 1, 8, 0), noType), fn("entry", 1, 12, 0)},
			map[uint64]string{8: "f+0x8", 15: "f+0xf", 16: ""}},
		{"a label where an inner function ends", []elfreloc.Symbol{fn("f", 1, 0, 16), fn("g", 1, 4, 4), with(fn("label", 1, 8, 0), noType)},
			map[uint64]string{7: "g+0x3", 8: "f+0x8", 15: "f+0xf"}},
		{"a longer alias that is not chosen", []elfreloc.Symbol{fn("a", 1, 0, 8), fn("b", 1, 0, 16), fn("c", 1, 0, 4)},
			map[uint64]string{0: "a+0x0", 7: "a+0x7", 8: "b+0x8", 16: ""}},
		{"overlapping, the inner one longer", []elfreloc.Symbol{fn("outer", 1, 0, 64), fn("a", 1, 8, 16), fn("b", 1, 16, 32)},
			map[uint64]string{15: "a+0x7", 24: "b+0x8", 47: "b+0x1f", 48: "outer+0x30"}},
		{"other sections", []elfreloc.Symbol{fn("before", 1, 0, 4096), fn("f", 2, 8, 8), with(fn("data", 3, 0, 64), noType)},
			map[uint64]string{8: "before+0x8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			functions, sections := table(t, c.symbols...)
			for off, want := range c.want {
				expect.Equal(t, want, functions.Place(sections[1], off), "%#x", off)
			}
		})
	}
}

// A function answers for its own section alone, also where it claims to be
// longer than that is.
func TestSectionsDoNotMix(t *testing.T) {
	functions, sections := table(t, fn("long", 1, 8, 1<<40), fn("second", 2, 8, 8), with(fn("data", 3, 0, 64), noType))
	for _, c := range []struct {
		section int
		off     uint64
		want    string
	}{
		{sections[1], 4000, "long+0xf98"}, {sections[1], 5000, ""}, {sections[2], 0, ""}, {sections[2], 8, "second+0x0"}, {sections[2], 16, ""},
		{sections[3], 0, ""}, {0, 0, ""}, {-1, 0, ""}, {1 << 20, 0, ""},
	} {
		expect.Equal(t, c.want, functions.Place(c.section, c.off), "section %d+%#x", c.section, c.off)
	}
}

// The table agrees with a search through all symbols, for every offset of the
// code of real objects.
func TestLookupAgreesWithASlowSearch(t *testing.T) {
	for _, file := range objects.ELF(t, "") {
		o := objects.Open(t, file.Data)
		functions := expect.Value(resolve.New(o, resolve.Options{}))(t, "%s", file.Name)
		syms := expect.Value(o.Symbols())(t)
		byCode := make(map[int][]elfreloc.Symbol)
		for i := range syms.Len() {
			if s := syms.At(i); s.Type == elf.STT_FUNC {
				if o.Machine == elf.EM_ARM {
					s.Value &^= 1
				}
				byCode[s.Section] = append(byCode[s.Section], s)
			}
		}
		for sec := range o.Sections {
			if !o.Sections[sec].Executable() {
				continue
			}
			for off := range o.Sections[sec].Size {
				f, ok := functions.Lookup(sec, off)
				start, size, found := slowSearch(byCode[sec], off)
				if diff := cmp.Diff([]uint64{start, size}, []uint64{f.Start, f.Size}); ok && found && diff != "" {
					t.Fatalf("%s: section %d+%#x: %s: %s", file.Name, sec, off, f.Name, diff)
				}
				if found && !ok {
					t.Fatalf("%s: section %d+%#x: no function", file.Name, sec, off)
				}
			}
		}
	}
}

// slowSearch finds the sized function that starts last before an offset and
// reaches it.
func slowSearch(functions []elfreloc.Symbol, off uint64) (start, size uint64, found bool) {
	for _, s := range functions {
		if s.Value <= off && off-s.Value < s.Size && (!found || s.Value > start) {
			start, size, found = s.Value, s.Size, true
		}
	}
	return
}

// lookAll lists the functions of interesting places of a file, and counts warnings.
func lookAll(in *failing.File) (functions []string, warnings int, err error) {
	o, err := elfreloc.Open(in, in.Size(), "a")
	if err != nil {
		return nil, 0, err
	}
	table, err := resolve.New(o, resolve.Options{DebugRoots: []string{}, Warn: func(error) { warnings++ }})
	if err != nil {
		return nil, warnings, err
	}
	for _, place := range interesting(o) {
		f, ok := table.Lookup(place.section, place.off)
		functions = append(functions, fmt.Sprint(place, f, ok, table.SourceFile(f)))
	}
	return functions, warnings, nil
}

// TestEachReadMayFail lets each read fail in turn. Then there is an error, a warning, or what was to
// be read is not needed.
func TestEachReadMayFail(t *testing.T) {
	files := append(objects.ELF(t, "calls.amd64-gcc12-O2", "calls.ppc64", "existing.thumb"), objects.Foreign(t, 16<<10)...)
	images := 0
	for _, file := range files {
		in := failing.New(file.Data, 0)
		want, warnings, refused := lookAll(in)
		if refused != nil {
			continue // an ELF file that is broken
		}
		images++
		for n := 1; n <= in.Reads; n++ {
			got, warned, err := lookAll(failing.New(file.Data, n))
			if err == nil && warned == warnings && !slices.Equal(want, got) {
				t.Errorf("%s: read %d of %d fails, and nothing tells so", file.Name, n, in.Reads)
			}
		}
	}
	expect.Equal(t, true, images > 10, "%d files", images)
}

// nowhere are the options for an image that has no debug file.
var nowhere = resolve.Options{DebugRoots: []string{}}

func tableOf(t testing.TB, path string, opts resolve.Options) *resolve.Table {
	t.Helper()
	if opts.Warn == nil {
		opts.Warn = func(err error) { t.Errorf("%s: warning: %v", path, err) }
	}
	return expect.Value(resolve.New(tools.OpenELF(t, path), opts))(t)
}

// source returns the path of a source in testdata.
func source(name string) string { return filepath.Join("testdata", name) }

// compile compiles sources of testdata in a new directory.
func compile(t testing.TB, compiler string, flags []string, sources ...string) (objects []string) {
	t.Helper()
	directory := t.TempDir()
	for _, s := range sources {
		out := filepath.Join(directory, strings.TrimSuffix(s, filepath.Ext(s))+".o")
		tools.Output(t, compiler, append(append([]string{}, flags...), "-c", source(s), "-o", out)...)
		objects = append(objects, out)
	}
	return objects
}

// Whatever a file claims, what is found holds the address that was asked for.
func FuzzTable(f *testing.F) {
	for _, file := range append(objects.Committed(f, 4<<10), objects.Foreign(f, 16<<10)...) {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "a")
		if err != nil {
			return
		}
		table, err := resolve.New(o, resolve.Options{DebugRoots: []string{}, Warn: func(error) {}})
		if err != nil {
			return
		}
		for _, place := range interesting(o) {
			f, ok := table.Lookup(place.section, place.off)
			if !ok {
				continue
			}
			if f.Section != place.section || f.Start > place.off || f.Size > 0 && place.off-f.Start >= f.Size || f.Name == "" != (f.Raw == "") {
				t.Errorf("%d+%#x is in %+v", place.section, place.off, f)
			}
			// A symbol may hold the start of what an unwind table describes.
			if start, ok := table.Lookup(f.Section, f.Start); !ok || start.Start != f.Start && start.From == f.From {
				t.Errorf("%d+%#x is in %+v, which starts in %+v", place.section, place.off, f, start)
			}
			table.SourceFile(f)
		}
	})
}

type place struct {
	section int
	off     uint64
}

// interesting are places around everything that a file names.
func interesting(o *elfreloc.Object) (places []place) {
	add := func(section int, off uint64) {
		places = append(places, place{section, off - 1}, place{section, off}, place{section, off + 1}, place{0, off})
	}
	for i := range o.Sections {
		s := &o.Sections[i]
		for _, off := range []uint64{0, s.Size, s.Addr, s.Addr + s.Size, s.Addr + s.Size/2} {
			add(i, off)
		}
	}
	if syms, err := o.Symbols(); err == nil {
		for i := range min(syms.Len(), 1000) {
			s := syms.At(i)
			add(s.Section, s.Value)
			add(s.Section, s.Value+s.Size)
		}
	}
	return places
}
