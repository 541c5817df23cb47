package elfreloc

import (
	"debug/elf"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
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
// used from several goroutines; an index
// that is not below Len panics.
type Symbols struct {
	o           *Object
	raw         []byte
	size        int // of an entry in raw, bytes
	len         int // entries in raw
	strings     string
	longEnds    func() []int // of the strings longer than longName, ascending
	extended    []byte       // SHT_SYMTAB_SHNDX, nil when there is none
	firstGlobal int
}

// newSymbols makes an empty table.
func newSymbols(o *Object) *Symbols {
	t := &Symbols{o: o, size: o.Encoding.SymbolSize()}
	t.longEnds = sync.OnceValue(func() []int { return longEnds(t.strings) })
	return t
}

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
	size := uint64(o.Encoding.SymbolSize())
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

func (t *Symbols) setRaw(raw []byte) { t.raw, t.len = raw, len(raw)/t.size }

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
	raw := t.rawAt(i)
	if sec := t.section(i, raw.shndx); sec >= len(t.o.Sections) {
		return fmt.Errorf("defined in section %d of %d", sec, len(t.o.Sections))
	}
	if local := elf.ST_BIND(raw.info) == elf.STB_LOCAL; local != (i < t.firstGlobal) {
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

// WithPrefix returns the symbols whose names begin with a prefix, by index.
func (t *Symbols) WithPrefix(prefix string) iter.Seq2[int, Symbol] {
	return func(yield func(int, Symbol) bool) {
		if !strings.Contains(t.strings, prefix) {
			return
		}
		for i := 1; i < t.len; i++ {
			if off := int(t.nameOffset(i)); off < len(t.strings) && strings.HasPrefix(t.strings[off:], prefix) && !yield(i, t.At(i)) {
				return
			}
		}
	}
}

// Named returns the symbols of a name, by index.
func (t *Symbols) Named(name string) iter.Seq2[int, Symbol] {
	return func(yield func(int, Symbol) bool) {
		for i, s := range t.WithPrefix(name) {
			if s.Name == name && !yield(i, s) {
				return
			}
		}
	}
}

func (t *Symbols) nameOffset(i int) uint32 {
	return t.o.Encoding.Order.Uint32(t.entry(i))
}

// longName is a length in bytes that few names exceed.
const longName = 1024

// longEnds returns the ends of the strings of a table that are longer than longName. Many
// symbols of a hostile table may share such a string.
func longEnds(table string) (ends []int) {
	for start := 0; start < len(table); {
		n := strings.IndexByte(table[start:], 0)
		if n < 0 {
			break
		}
		if start += n; n > longName {
			ends = append(ends, start)
		}
		start++
	}
	return ends
}

// nameAt returns the name at off of the string table, which checkAt has seen to be sound.
func (t *Symbols) nameAt(off uint32) string {
	if int(off) >= len(t.strings) {
		return ""
	}
	s := t.strings[off:]
	if n := strings.IndexByte(s[:min(len(s), longName+1)], 0); n >= 0 {
		return s[:n]
	}
	ends := t.longEnds()
	i, _ := slices.BinarySearch(ends, int(off))
	return t.strings[off:ends[i]]
}

// At returns symbol i.
func (t *Symbols) At(i int) Symbol {
	raw := t.rawAt(i)
	return Symbol{
		Name: t.nameAt(raw.name), Bind: elf.ST_BIND(raw.info), Type: elf.ST_TYPE(raw.info), Other: raw.other,
		Section: t.section(i, raw.shndx), Value: raw.value, Size: raw.size,
	}
}

// Place returns the section and the value of symbol i, as At does.
func (t *Symbols) Place(i int) (section int, value uint64) {
	raw := t.rawAt(i)
	return t.section(i, raw.shndx), raw.value
}

func (t *Symbols) section(i int, shndx uint16) int {
	switch {
	case elf.SectionIndex(shndx) == elf.SHN_XINDEX && t.extended != nil:
		return int(t.o.Encoding.Order.Uint32(t.extended[4*i:]))
	case elf.SectionIndex(shndx) >= elf.SHN_LORESERVE:
		return int(shndx) - 0x10000
	}
	return int(shndx)
}

// sectionSymbols returns the index of the nameless STT_SECTION symbol of each section, 0 for
// those without one.
func (t *Symbols) sectionSymbols() []uint32 {
	symbols := make([]uint32, len(t.o.Sections))
	for i := 1; i < t.firstGlobal; i++ {
		raw := t.rawAt(i)
		if elf.ST_TYPE(raw.info) != elf.STT_SECTION || raw.value != 0 {
			continue
		}
		if sec := t.section(i, raw.shndx); sec > 0 && sec < len(symbols) && symbols[sec] == 0 {
			symbols[sec] = uint32(i)
		}
	}
	return symbols
}

func (t *Symbols) rawAt(i int) rawSymbol {
	return t.o.Encoding.getSymbol(t.entry(i))
}

// Mappings returns the mapping symbols, in their order: their addresses, and the letters that say what the section holds
// from there on. letters are those that the machine's assemblers use.
//
// A mapping symbol is local, of no type, and named $ and its letter, with ".suffix"
// behind it or not (ELF for the Arm Architecture, 5.5.5; ELF for the Arm 64-bit
// Architecture, 5.5.4). On RISC-V the name of an instruction set may stand between
// the two (RISC-V ELF psABI, "Mapping Symbol").
func (t *Symbols) Mappings(letters string) iter.Seq2[Addr, byte] {
	return func(yield func(Addr, byte) bool) {
		if letters == "" {
			return
		}
		for i := 1; i < t.firstGlobal; i++ {
			// Most symbols are none, so the whole table is gone through for one byte each.
			name := t.nameOffset(i)
			if int(name) >= len(t.strings) || t.strings[name] != '$' {
				continue
			}
			letter := mappingLetter(t.strings[name:])
			if letter == 0 || strings.IndexByte(letters, letter) < 0 {
				continue
			}
			if s := t.At(i); s.Type == elf.STT_NOTYPE && !yield(Addr{s.Section, s.Value}, letter) {
				return
			}
		}
	}
}

// mappingLetter returns the letter of a mapping symbol, whose name begins text, or 0
// for another symbol.
func mappingLetter(text string) byte {
	if len(text) < 3 {
		return 0
	}
	behind := text[2:]
	if behind[0] == 0 || behind[0] == '.' || text[1] == 'x' && strings.HasPrefix(behind, "rv") {
		return text[1]
	}
	return 0
}
