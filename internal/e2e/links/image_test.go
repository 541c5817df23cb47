package links

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/tools"
)

// image is a linked program or library, as debug/elf sees it.
type image struct {
	path    string
	file    *elf.File
	symbols []elf.Symbol
	funcs   []elf.Symbol // by address
	dynamic map[uint64]word
	thumb   map[uint64]bool // where functions of Thumb begin
}

// word is what a dynamic relocation puts at an address: a value, or where the
// loader chooses it, the name of a symbol and an addend.
type word struct {
	symbol string
	value  uint64
}

func openImage(t *testing.T, path string) *image {
	t.Helper()
	f := disk.OpenELF(t, path)
	im := &image{path: path, file: f, dynamic: map[uint64]word{}, thumb: map[uint64]bool{}}
	im.symbols = expect.Value(f.Symbols())(t, "%s", path)
	im.relocate(t)
	im.followDescriptors(t)
	for _, s := range im.symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			im.evenFunction(&s)
			im.funcs = append(im.funcs, s)
		}
	}
	sort.Slice(im.funcs, func(i, j int) bool {
		a, b := im.funcs[i], im.funcs[j]
		if a.Value != b.Value {
			return a.Value < b.Value
		}
		return a.Name < b.Name
	})
	return im
}

// The dynamic relocations of data, by machine: what adds the load base, and
// what adds a symbol's address.
var (
	relative = map[elf.Machine]uint32{elf.EM_386: 8, elf.EM_ARM: 23, elf.EM_X86_64: 8, elf.EM_AARCH64: 1027, elf.EM_LOONGARCH: 3, elf.EM_PPC64: 22, elf.EM_RISCV: 3, elf.EM_S390: 12}
	symbolic = map[elf.Machine]uint32{elf.EM_386: 1, elf.EM_ARM: 2, elf.EM_X86_64: 1, elf.EM_AARCH64: 257, elf.EM_LOONGARCH: 2, elf.EM_PPC64: 38, elf.EM_RISCV: 2, elf.EM_S390: 22}
)

// relocate does what the dynamic loader does to words of data, at load base 0.
func (im *image) relocate(t *testing.T) {
	t.Helper()
	names, err := im.file.DynamicSymbols()
	if err != nil && im.file.Section(".dynsym") != nil {
		t.Fatalf("%s: %v", im.path, err)
	}
	for _, s := range im.file.Sections {
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data := expect.Value(s.Data())(t, "%s: %s", im.path, s.Name)
		size := im.wordSize()
		n := 2 * size
		if s.Type == elf.SHT_RELA {
			n += size
		}
		for ; len(data) >= n; data = data[n:] {
			at, info := im.number(data[:size]), im.number(data[size:2*size])
			typ, sym := uint32(info), info>>32
			if size == 4 {
				typ, sym = uint32(info&0xff), info>>8
			}
			if typ != relative[im.file.Machine] && typ != symbolic[im.file.Machine] {
				continue
			}
			w := word{}
			if s.Type == elf.SHT_RELA {
				w.value = im.number(data[2*size : n])
			} else {
				w.value = im.number(im.bytes(t, at, size))
			}
			if typ == symbolic[im.file.Machine] {
				w.symbol = names[sym-1].Name
			}
			im.dynamic[at] = w
		}
	}
}

// wordSize returns the size of an address in bytes.
func (im *image) wordSize() int {
	if im.file.Class == elf.ELFCLASS32 {
		return 4
	}
	return 8
}

// number reads a number of 4 or 8 bytes.
func (im *image) number(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(im.file.ByteOrder.Uint32(b))
	}
	return im.file.ByteOrder.Uint64(b)
}

// bytes returns the bytes at an address, zero where the file holds none.
func (im *image) bytes(t *testing.T, addr uint64, n int) []byte {
	t.Helper()
	for _, p := range im.file.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr+uint64(n) <= p.Vaddr+p.Memsz {
			b := make([]byte, n)
			if addr+uint64(n) <= p.Vaddr+p.Filesz {
				expect.Value(p.ReadAt(b, int64(addr-p.Vaddr)))(t, "%s: %#x", im.path, addr)
			}
			return b
		}
	}
	t.Fatalf("%s: address %#x is not loaded", im.path, addr)
	return nil
}

// word returns the word at an address, after loading.
func (im *image) word(t *testing.T, addr uint64) word {
	t.Helper()
	if w, ok := im.dynamic[addr]; ok {
		return w
	}
	return word{value: im.number(im.bytes(t, addr, im.wordSize()))}
}

// header returns the address of the ELF header.
func (im *image) header(t *testing.T) uint64 {
	t.Helper()
	for _, p := range im.file.Progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 {
			return p.Vaddr
		}
	}
	t.Fatalf("%s: the ELF header is not loaded", im.path)
	return 0
}

// around lists the names of the functions around an address, sorted, and the
// address of the first byte of the innermost.
func (im *image) around(addr uint64) (names []string, start uint64) {
	for _, f := range im.funcs {
		if f.Value > addr {
			break
		}
		if addr < f.Value+f.Size {
			if f.Value != start {
				names, start = nil, f.Value
			}
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names, start
}

// at lists the names of the symbols of an address.
func (im *image) at(addr uint64) []string {
	var names []string
	for _, s := range im.symbols {
		if s.Value == addr && s.Section != elf.SHN_UNDEF && s.Name != "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// symbolIs matches the definition of a name.
func symbolIs(name string) func(elf.Symbol) bool {
	return func(s elf.Symbol) bool { return s.Name == name && s.Section != elf.SHN_UNDEF }
}

// bounds returns where the records of a section stand, by the section header and by
// the symbols that the linker made, which have to agree.
func (im *image) bounds(t *testing.T, name string) (start, end uint64) {
	t.Helper()
	for _, s := range im.file.Sections {
		if s.Name != name {
			continue
		}
		expect.Equal(t, 0, end, "%s: two sections %s", im.path, name)
		start, end = s.Addr, s.Addr+s.Size
	}
	for _, s := range im.symbols {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		if s.Name == "__start_"+name && s.Value != start || s.Name == "__stop_"+name && s.Value != end {
			t.Errorf("%s: %s = %#x, but the section is [%#x, %#x)", im.path, s.Name, s.Value, start, end)
		}
	}
	return start, end
}

// site is a probe site: a record of the converted image, or a call of a stub in
// the twin. Its function is the first name, in alphabetic order, of those around.
type site struct {
	kind     string // probe or isenabled
	id       string
	function string
	offset   uint64 // from the function's start
	addr     uint64
	skip     uint64 // of a conditional jump in the twin: addr is that many bytes behind it
}

func (s site) String() string {
	return fmt.Sprintf("%s %s in %s+%#x", s.kind, s.id, s.function, s.offset)
}

// records reads the records of a layout.
func (im *image) records(t *testing.T, l layout) []site {
	t.Helper()
	var sites []site
	for _, kind := range kinds {
		start, end := im.bounds(t, l.section[kind])
		size := l.size(im)
		expect.Equal(t, 0, (end-start)%size, "%s: bytes of %s behind the last whole record", im.path, l.section[kind])
		for ; start < end; start += size {
			probe, at := l.read(t, im, start)
			if at.symbol != "" {
				t.Errorf("%s: record %#x: the site is %s+%#x, which another module can take over", im.path, start, at.symbol, at.value)
				continue
			}
			s := site{kind: kind, id: im.probe(t, probe), addr: at.value}
			im.locate(t, &s)
			sites = append(sites, s)
		}
	}
	return sites
}

func (im *image) locate(t *testing.T, s *site) {
	t.Helper()
	names, start := im.around(s.addr)
	if names == nil {
		t.Errorf("%s: %s %s at %#x is in no function", im.path, s.kind, s.id, s.addr)
		return
	}
	s.function, s.offset = names[0], s.addr-start
}

// probe returns the id of the probe object that a record points to.
func (im *image) probe(t *testing.T, w word) string {
	t.Helper()
	names := []string{w.symbol}
	if w.symbol == "" {
		names = im.at(w.value)
	}
	for _, n := range names {
		if id, ok := strings.CutPrefix(n, "sdt_"); ok {
			return id
		}
	}
	t.Errorf("%s: no probe object at %v, but %q", im.path, w, names)
	return ""
}

// listed is a site of a listing, with its probe.
type listed struct {
	Provider, Module, Name string
	listjson.Site          // whose function is the probe's
}

// list runs the lister on an image.
func list(t *testing.T, args ...string) (all []listed) {
	t.Helper()
	for _, p := range listjson.Probes(t, tools.Output(t, converter, append([]string{"list", "--json"}, args...)...)) {
		for _, s := range p.Sites {
			if s.Function == "" {
				t.Errorf("list %q: %s is in no function", args, s.Address)
			}
			s.Function = p.Function
			all = append(all, listed{p.Provider, p.Module, p.Name, s})
		}
	}
	return all
}

// checkListing compares a listing with the records as debug/elf shows them, and
// with the probe objects that ids.h defines.
func checkListing(t *testing.T, im *image, sites []site) {
	t.Helper()
	var want []string
	names := map[string][]string{}
	for _, s := range sites {
		address := fmt.Sprintf("%#x", s.addr)
		names[address], _ = im.around(s.addr)
		want = append(want, fmt.Sprintf("%s %s %s", address, s.kind, strings.ReplaceAll(providerAndName(s.id), "__", "-")))
	}
	var got []string
	for _, l := range list(t, im.path) {
		kind := "probe"
		if strings.HasPrefix(l.Kind, "isenabled") {
			kind = "isenabled"
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", l.Address, kind, l.Provider, l.Name))
		symbol := l.Symbol
		if symbol == "" {
			symbol = l.Function
		}
		switch {
		case !slices.Contains(names[l.Address], symbol):
			t.Errorf("%s: list has %s in %q, not in one of %q", im.path, l.Address, symbol, names[l.Address])
		case symbol != l.Function && !strings.HasPrefix(symbol, l.Function+"."):
			t.Errorf("%s: %q is listed as %q", im.path, symbol, l.Function)
		case l.State != "disabled" || l.Module != filepath.Base(im.path):
			t.Errorf("%s: %+v", im.path, l)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	expect.Equal(t, want, got, "%s: records (-) and listing (+)", im.path)
}

func providerAndName(id string) string {
	if provider, name, ok := strings.Cut(id, "___"); ok {
		return provider + " " + name
	}
	return "sdt " + id
}
