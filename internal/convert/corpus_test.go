package convert

import (
	"bytes"
	"cmp"
	"debug/elf"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/manifest"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

var update = flag.Bool("update", false, "write what conversions do now into the golden file")

// run is what came of one committed object.
type run struct {
	before, after string // paths; after does not exist when the conversion failed
	failed        bool
	messages      string
	object        *manifest.Object
}

// set changes the options of a conversion; nil changes nothing.
type set func(o *patch.Options)

// convertTo converts an object with a manifest, into a directory of the test.
func convertTo(t *testing.T, path string, change set) run {
	t.Helper()
	c := run{before: path, after: filepath.Join(t.TempDir(), filepath.Base(path))}
	opts := Options{Patch: patch.Options{FixedLayout: true, Functions: patch.WithoutFunctions}, Jobs: 2, Manifest: true}
	if change != nil {
		change(&opts.Patch)
	}
	r := New(opts, &replace.Writer{}).File(path, c.after)
	c.failed = r.Failed
	c.messages = strings.ReplaceAll(r.Messages.String(), filepath.Dir(path)+string(filepath.Separator), "")
	if len(r.Objects) != 1 {
		t.Fatalf("%s: a manifest of %d objects", path, len(r.Objects))
	}
	c.object = r.Objects[0]
	return c
}

// outcome returns the golden text of a conversion: sites by kind, or the messages.
func (c run) outcome() string {
	text := filepath.Base(c.before) + ": " + c.object.Status
	if !c.failed {
		kinds := map[string]int{}
		for _, s := range c.object.Sites {
			kinds[s.Kind]++
		}
		names := make([]string, 0, len(kinds))
		for name, n := range kinds {
			names = append(names, fmt.Sprintf("%s %d", name, n))
		}
		slices.Sort(names)
		if len(names) > 0 {
			text += ": " + strings.Join(names, ", ")
		}
	}
	text += "\n"
	for line := range strings.Lines(c.messages) {
		text += "\t" + line
	}
	return text
}

// Every committed object converts, or fails, exactly as corpus.golden says.
func TestCorpus(t *testing.T) {
	var got strings.Builder
	for _, path := range objects.Paths(t) {
		c := convertTo(t, path, nil)
		got.WriteString(c.outcome())
		if c.failed != (len(c.messages) > 0) {
			t.Errorf("%s: failed is %v, with messages %q", path, c.failed, c.messages)
		}
		if _, err := os.Stat(c.after); (err == nil) == c.failed {
			t.Errorf("%s: failed is %v, output: %v", path, c.failed, err)
		}
	}
	const golden = "testdata/corpus.golden"
	if *update {
		disk.Write(t, golden, got.String())
	}
	want := disk.Read(t, golden)
	expect.Equal(t, strings.Split(string(want), "\n"), strings.Split(got.String(), "\n"))
}

// converted runs a check on each committed object that converts and has sites.
func converted(t *testing.T, change set, check func(t *testing.T, c run)) {
	paths := objects.Paths(t)
	if testing.Short() {
		paths = everyTenth(paths)
	}
	if convertedOf(t, paths, change, check) == 0 {
		t.Error("no object was converted")
	}
}

// everyTenth returns the first, the eleventh and so on.
func everyTenth(all []string) (some []string) {
	for i := 0; i < len(all); i += 10 {
		some = append(some, all[i])
	}
	return some
}

// convertedOf is converted for some of the objects. It returns how many it has checked.
func convertedOf(t *testing.T, paths []string, change set, check func(t *testing.T, c run)) (n int) {
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := convertTo(t, path, change)
			if !c.failed && len(c.object.Sites) > 0 {
				n++
				check(t, c)
			}
		})
	}
	return n
}

// sharesLoads reports whether one relocation may be that of several sites: calls through
// registers, which are shorter than others. internal/e2e/links has their count.
func sharesLoads(c run) bool {
	return slices.ContainsFunc(c.object.Sites, func(s manifest.Site) bool { return len(s.Old) < 4 })
}

// Without readelf, corpus.golden has the counts.
func TestEveryCallOfAStubIsASite(t *testing.T) {
	tools.Need(t, "readelf", toolchains.LLVM("llvm-readelf"))
	converted(t, nil, func(t *testing.T, c run) {
		if sharesLoads(c) {
			return
		}
		code, reader := map[string]bool{}, "readelf"
		for i, s := range viewFile(t, c.before).Sections {
			if s.Flags&0x4 != 0 && i > 0 { // SHF_EXECINSTR
				code[s.Name] = true
			}
			if s.Type == objects.CREL {
				reader = toolchains.LLVM("llvm-readelf") // GNU's knows none
			}
		}
		out := tools.Output(t, reader, "-rW", c.before)
		n, counts := 0, false
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(line, "Relocation section '"); ok {
				name, _, _ := strings.Cut(rest, "'")
				counts = code[strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, ".crel"), ".rela"), ".rel")]
			} else if counts && strings.Contains(line, " __dtrace_") {
				n++
			}
		}
		if len(c.object.Sites) != n {
			t.Errorf("%d sites, and readelf shows %d relocations of code against stubs", len(c.object.Sites), n)
		}
	})
}

func sameContents(t *testing.T, a, b string) bool {
	t.Helper()
	x := disk.Read(t, a)
	y := disk.Read(t, b)
	return bytes.Equal(x, y)
}

func TestSameInputGivesSameBytes(t *testing.T) {
	converted(t, nil, func(t *testing.T, c run) {
		if again := convertTo(t, c.before, nil); !sameContents(t, c.after, again.after) {
			t.Error("two conversions of one object differ")
		}
	})
}

// view is an object as debug/elf and a few lines of decoding see it: what the
// conversion is judged by, none of which is its own code.
type view struct {
	*elf.File
	data [][]byte
	syms []elf.Symbol // with symbol 0
}

// viewReloc is a relocation with all that its symbol says.
type viewReloc struct {
	Offset uint64
	Type   uint32
	Addend int64
	Sym    viewSymbol
}

// viewSymbol identifies a symbol without its index.
type viewSymbol struct {
	Name        string
	Section     elf.SectionIndex
	Value, Size uint64
	Info, Other byte
}

func viewFile(t *testing.T, path string) *view {
	t.Helper()
	raw := disk.Read(t, path)
	f := expect.Value(elf.NewFile(bytes.NewReader(raw)))(t, "%s", path)
	v := &view{File: f, data: make([][]byte, len(f.Sections))}
	for i, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL {
			v.data[i] = raw[s.Offset : s.Offset+s.FileSize]
		}
	}
	syms := expect.Value(f.Symbols())(t, "%s", path)
	v.syms = append([]elf.Symbol{{}}, syms...)
	return v
}

func (v *view) executable(sec int) bool { return v.Sections[sec].Flags&elf.SHF_EXECINSTR != 0 }

func (v *view) symbol(i uint32) viewSymbol {
	s := v.syms[i]
	return viewSymbol{s.Name, s.Section, s.Value, s.Size, s.Info, s.Other}
}

// relocs decodes a relocation section of any class and byte order.
func (v *view) relocs(sec int) []viewReloc {
	s, b := v.Sections[sec], v.data[sec]
	rela := s.Type == elf.SHT_RELA
	var out []viewReloc
	if s.Type == objects.CREL {
		for _, r := range objects.DecodeCREL(v.Class, b) {
			out = append(out, viewReloc{r.Offset, r.Type, r.Addend, v.symbol(r.Sym)})
		}
		return out
	}
	for len(b) > 0 {
		var r viewReloc
		var sym uint32
		if v.Class == elf.ELFCLASS64 {
			info := v.ByteOrder.Uint64(b[8:])
			r.Offset, sym, r.Type = v.ByteOrder.Uint64(b), uint32(info>>32), uint32(info)
			if v.Machine == elf.EM_MIPS && v.ByteOrder.String() == "LittleEndian" {
				sym = uint32(info)
			}
			b = b[16:]
			if rela {
				r.Addend, b = int64(v.ByteOrder.Uint64(b)), b[8:]
			}
		} else {
			info := v.ByteOrder.Uint32(b[4:])
			r.Offset, sym, r.Type = uint64(v.ByteOrder.Uint32(b)), info>>8, info&0xff
			b = b[8:]
			if rela {
				r.Addend, b = int64(int32(v.ByteOrder.Uint32(b))), b[4:]
			}
		}
		r.Sym = v.symbol(sym)
		out = append(out, r)
	}
	return out
}

func isRelocSection(s *elf.Section) bool {
	return s.Type == elf.SHT_REL || s.Type == elf.SHT_RELA || s.Type == objects.CREL
}

// stubID returns the probe id of a stub's name, "" for any other name.
func stubID(name string) string {
	for _, prefix := range []string{"__dtrace_probe_", "__dtrace_isenabled_"} {
		if id, ok := strings.CutPrefix(name, prefix); ok {
			return id
		}
	}
	return ""
}

// groupMembers returns the words of a section group behind its flags.
func (v *view) groupMembers(sec int) []uint32 {
	var out []uint32
	for b := v.data[sec][4:]; len(b) > 0; b = b[4:] {
		out = append(out, v.ByteOrder.Uint32(b))
	}
	return out
}

// addrsig decodes a list of ULEB128 symbol indexes into their symbols.
func (v *view) addrsig(t *testing.T, sec int) []viewSymbol {
	t.Helper()
	var out []viewSymbol
	value, shift := uint64(0), 0
	for _, b := range v.data[sec] {
		value |= uint64(b&0x7f) << shift
		if shift += 7; b&0x80 != 0 {
			continue
		}
		if value >= uint64(len(v.syms)) {
			t.Fatalf("address-significance table names symbol %d of %d", value, len(v.syms))
		}
		out = append(out, v.symbol(uint32(value)))
		value, shift = 0, 0
	}
	if shift != 0 {
		t.Fatal("address-significance table ends within a number")
	}
	return out
}

// sortedSymbols lists all symbols in an order that does not depend on the
// table's.
func (v *view) sortedSymbols() []viewSymbol {
	var out []viewSymbol
	for i := range v.syms {
		out = append(out, v.symbol(uint32(i)))
	}
	slices.SortFunc(out, func(a, b viewSymbol) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Section, b.Section), cmp.Compare(a.Value, b.Value),
			cmp.Compare(a.Size, b.Size), cmp.Compare(a.Info, b.Info), cmp.Compare(a.Other, b.Other))
	})
	return out
}
