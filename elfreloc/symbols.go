package elfreloc

import (
	"debug/elf"
	"fmt"
	"strings"
)

// Symbol is an entry of a symbol table (gABI, "Symbol Table").
type Symbol struct {
	Name string
	Bind elf.SymBind
	Type elf.SymType
	// Other is st_other: the visibility in its low bits, and above them what
	// the processor's supplement defines.
	Other byte
	// Section is the index of the section that defines the symbol, 0 when none
	// does, or one of the negative values below.
	Section int
	Value   uint64 // in a relocatable object an offset in Section, in bytes; else an address
	Size    uint64 // bytes; 0 when unknown
}

// Reserved section indexes (SHN_ABS and its kin) are negative, so that they
// never meet a real index, which may exceed 0xff00 where a file extends it.
const (
	SectionAbs    = int(elf.SHN_ABS) - 0x10000
	SectionCommon = int(elf.SHN_COMMON) - 0x10000
)

// Defined reports whether a section of the object defines the symbol.
func (s Symbol) Defined() bool { return s.Section > 0 }

// Visibility returns the visibility in Other.
func (s Symbol) Visibility() elf.SymVis { return elf.SymVis(s.Other & 3) }

// Hidden returns the symbol as other modules cannot see it: with the visibility STV_HIDDEN,
// unless it has one that hides it already.
func (s Symbol) Hidden() Symbol {
	if v := s.Visibility(); v == elf.STV_DEFAULT || v == elf.STV_PROTECTED {
		s.Other = s.Other&^3 | byte(elf.STV_HIDDEN)
	}
	return s
}

// Symbols is the symbol table as the file holds it. Its entries are decoded as
// they are asked for; all of them are known to be sound: names end, and those of a
// relocatable object are defined in sections that there are, locals first. It may be
// used from several goroutines, for as long as the object's reader is good; an index
// that is not below Len panics.
type Symbols struct {
	o           *Object
	raw         []byte
	size        int // of an entry in raw, bytes
	len         int // entries in raw
	strings     string
	extended    []byte // SHT_SYMTAB_SHNDX, nil when there is none
	firstGlobal int
}

// newSymbols makes an empty table.
func newSymbols(o *Object) *Symbols { return &Symbols{o: o, size: o.Encoding.symbolSize()} }

func (t *Symbols) setRaw(raw []byte) { t.raw, t.len = raw, len(raw)/t.size }

// Symbols reads the symbol table, once. Without one it is empty.
func (o *Object) Symbols() (*Symbols, error) {
	if o.symbols != nil {
		return o.symbols, nil
	}
	t := newSymbols(o)
	if o.symtab != 0 {
		if err := t.read(o.symtab, o.shndx); err != nil {
			return nil, err
		}
	}
	o.symbols = t
	return t, nil
}

// read reads section index, and its extension shndx unless that is 0.
func (t *Symbols) read(index, shndx int) (err error) {
	o, sec := t.o, &t.o.Sections[index]
	size := uint64(o.Encoding.symbolSize())
	switch {
	case sec.Entsize != size || sec.Size%size != 0 || sec.Size == 0:
		return o.SectionError(index, fmt.Errorf("%d bytes of symbols of %d bytes, want a multiple of %d", sec.Size, sec.Entsize, size))
	case uint64(sec.Info) > sec.Size/size || sec.Info == 0:
		return o.SectionError(index, fmt.Errorf("first global symbol is %d of %d", sec.Info, sec.Size/size))
	case int(sec.Link) >= len(o.Sections):
		return o.SectionError(index, fmt.Errorf("string table is section %d of %d", sec.Link, len(o.Sections)))
	}
	if o.Type == elf.ET_REL {
		if err := o.CheckOverlap(); err != nil {
			return err
		}
	}
	t.firstGlobal = int(sec.Info)
	if t.strings, err = o.stringTable(int(sec.Link)); err != nil {
		return err
	}
	raw, err := o.Data(index)
	if err != nil {
		return err
	}
	t.setRaw(raw)
	if shndx != 0 {
		if t.extended, err = o.Data(shndx); err != nil {
			return err
		}
		if len(t.extended) != 4*t.Len() {
			return o.SectionError(shndx, fmt.Errorf("%d bytes for %d symbols", len(t.extended), t.Len()))
		}
	}
	for i := range t.Len() {
		if err := t.checkAt(i); err != nil {
			return o.SectionError(index, fmt.Errorf("symbol %d: %w", i, err))
		}
	}
	return nil
}

// checkAt makes At safe for a symbol.
func (t *Symbols) checkAt(i int) error {
	if name := t.nameOffset(i); name >= uint32(len(t.strings)) || t.strings[len(t.strings)-1] != 0 {
		if _, err := stringAt(t.strings, name); err != nil {
			return err
		}
	}
	if t.o.Type != elf.ET_REL {
		return nil // the indexes of a linked file are not followed
	}
	info, shndx := t.o.Encoding.symbolPlace(t.entry(i))
	if sec := t.section(i, shndx); sec >= len(t.o.Sections) {
		return fmt.Errorf("defined in section %d of %d", sec, len(t.o.Sections))
	}
	if local := elf.ST_BIND(info) == elf.STB_LOCAL; local != (i < t.firstGlobal) {
		return fmt.Errorf("local and global symbols are not divided at %d", t.firstGlobal)
	}
	return nil
}

// Len returns the number of symbols, with symbol 0.
func (t *Symbols) Len() int { return t.len }

// entry returns symbol i as the file holds it.
func (t *Symbols) entry(i int) []byte { return t.raw[i*t.size : (i+1)*t.size] }

// FirstGlobal returns the index of the first symbol that is not local.
func (t *Symbols) FirstGlobal() int { return t.firstGlobal }

// Name returns the name of symbol i. It shares its bytes with the whole string table.
func (t *Symbols) Name(i int) string { return t.nameAt(t.nameOffset(i)) }

// Tail returns the string table from the name of symbol i on. Searching there
// saves looking for the end of each name.
func (t *Symbols) Tail(i int) string {
	if off := t.nameOffset(i); int(off) < len(t.strings) {
		return t.strings[off:]
	}
	return ""
}

func (t *Symbols) nameOffset(i int) uint32 {
	return t.o.Encoding.u32(t.entry(i))
}

func (t *Symbols) nameAt(off uint32) string {
	s, _ := stringAt(t.strings, off) // check has seen that it is sound
	return s
}

// At returns symbol i.
func (t *Symbols) At(i int) Symbol {
	s := t.Nameless(i)
	s.Name = t.Name(i)
	return s
}

// Nameless is At without the name, which takes longer to find than all the
// rest takes to read.
func (t *Symbols) Nameless(i int) Symbol {
	raw := t.rawAt(i)
	return Symbol{
		Bind: elf.ST_BIND(raw.info), Type: elf.ST_TYPE(raw.info), Other: raw.other,
		Section: t.section(i, raw.shndx), Value: raw.value, Size: raw.size,
	}
}

// Place returns the section and the value of symbol i, as At does. It decodes
// nothing else: large tables are searched for places.
func (t *Symbols) Place(i int) (section int, value uint64) {
	l := &t.o.Encoding
	if l.Class == elf.ELFCLASS64 {
		b := t.raw[i*24 : i*24+24]
		return t.section(i, l.u16(b[6:])), l.u64(b[8:])
	}
	b := t.raw[i*16 : i*16+16]
	return t.section(i, l.u16(b[14:])), uint64(l.u32(b[4:]))
}

func (t *Symbols) rawAt(i int) rawSymbol {
	return t.o.Encoding.getSymbol(t.entry(i))
}

// Info reads only st_info: the binding and the type of symbol i.
func (t *Symbols) Info(i int) byte {
	info, _ := t.o.Encoding.symbolPlace(t.entry(i))
	return info
}

func (t *Symbols) section(i int, shndx uint16) int {
	switch {
	case elf.SectionIndex(shndx) == elf.SHN_XINDEX && t.extended != nil:
		return int(t.o.Encoding.u32(t.extended[4*i:]))
	case elf.SectionIndex(shndx) >= elf.SHN_LORESERVE:
		return int(shndx) - 0x10000
	}
	return int(shndx)
}

// sectionSymbols returns the index of the nameless STT_SECTION symbol of each section
// that has one.
func (t *Symbols) sectionSymbols() map[int]uint32 {
	m := make(map[int]uint32)
	for i := 1; i < t.firstGlobal; i++ {
		if elf.ST_TYPE(t.Info(i)) != elf.STT_SECTION {
			continue
		}
		raw := t.rawAt(i)
		if raw.value != 0 {
			continue
		}
		sec := t.section(i, raw.shndx)
		if _, ok := m[sec]; !ok && sec > 0 {
			m[sec] = uint32(i)
		}
	}
	return m
}

// Mentions reports whether a string occurs anywhere in the names.
func (t *Symbols) Mentions(s string) bool { return strings.Contains(t.strings, s) }
