package convert

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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
