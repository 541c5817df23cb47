// Package linkerset writes and reads the records of probe sites.
//
// A record says that the probe object `sdt_<id>` has a site at an address. The
// records of one text section stand in one section of their own, so that a
// linker which drops the text can drop them with it; in the final link the
// sections of one name become one array, which the program finds between
// __start_<section> and __stop_<section>.
//
// Three layouts exist because no one serves all: two absolute words are what
// every linker and kernel can do; distances of 32 bits need no dynamic
// relocations in position-independent code; pointers to structures are what
// FreeBSD's sys/linker_set.h and its kernel linker look for.
package linkerset

import (
	"debug/elf"
	"fmt"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Format is the shape of a record.
type Format uint8

const (
	Pairs    Format = iota // { word probe; word offset }, absolute
	Relative               // { int32 probe; int32 offset }, each from its own field
	FreeBSD                // pointers to { word probe; word offset }
)

// Formats are all of them.
func Formats() []Format { return []Format{Pairs, Relative, FreeBSD} }

var formats = []string{"pairs", "relative", "freebsd"}

func (f Format) String() string { return formats[f] }

// Layout is a format and the name that its section names derive from.
type Layout struct {
	Format Format
	Name   string // of the section of probe calls; "" for the format's own
}

// ParseLayout makes a Layout from the values of --layout and --section.
func ParseLayout(format, name string) (Layout, error) {
	for i, f := range formats {
		if f != format {
			continue
		}
		if name != "" && !isIdentifier(name) {
			return Layout{}, fmt.Errorf("section name %q is not a C identifier, so linkers would make no __start_ and __stop_ symbols", name)
		}
		return Layout{Format(i), name}, nil
	}
	return Layout{}, fmt.Errorf("unknown layout %q; known are %s", format, strings.Join(formats, ", "))
}

// isIdentifier reports whether a name is one in C.
func isIdentifier(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

var defaultSections = [...][2]string{
	Pairs:    {arch.Probe: "sdt_instances_set", arch.Enabled: "sdt_isenabled_set"},
	Relative: {arch.Probe: "sdt_instances_rel", arch.Enabled: "sdt_isenabled_rel"},
	FreeBSD:  {arch.Probe: "set_sdt_instances_set", arch.Enabled: "set_sdt_isenabled_set"},
}

// Section is the name of the section that holds the records of a kind, or the
// pointers to them.
func (l Layout) Section(k arch.Kind) string {
	if l.Name == "" {
		return defaultSections[l.Format][k]
	}
	name := l.Name
	if k == arch.Enabled {
		name += "_isenabled"
	}
	if l.Format == FreeBSD {
		name = "set_" + name
	}
	return name
}

// structs is the name of the section of the structures that FreeBSD's pointers
// point to.
func (l Layout) structs() string {
	if l.Name == "" {
		return "sdt_instances"
	}
	return l.Name + "_structs"
}

// Size is the length of a record in bytes, for words of the given size.
func (l Layout) Size(word int) int {
	switch l.Format {
	case Relative:
		return 8
	case FreeBSD:
		return word
	}
	return 2 * word
}

func (l Layout) flags() elf.SectionFlag {
	if l.Format == Relative {
		return elf.SHF_ALLOC
	}
	return elf.SHF_ALLOC | elf.SHF_WRITE
}

// IsRecordSection reports whether a section holds records in this layout, and
// of which kind. The flags tell layouts apart that share a name.
func (l Layout) IsRecordSection(sec *elfreloc.Section) (arch.Kind, bool) {
	for _, k := range []arch.Kind{arch.Probe, arch.Enabled} {
		if sec.Name == l.Section(k) && sec.Flags&elf.SHF_WRITE == l.flags()&elf.SHF_WRITE {
			return k, true
		}
	}
	return 0, false
}

// All lists the layouts that derive from a name, the wanted one first.
func (l Layout) All() []Layout {
	all := []Layout{l}
	for f := range formats {
		if Format(f) != l.Format {
			all = append(all, Layout{Format(f), l.Name})
		}
	}
	return all
}

// Candidates are the layouts that records may have where this one is asked for: all
// with its name, the wanted one first, and all that conversions make when they are not
// told otherwise.
func (l Layout) Candidates() []Layout {
	all := l.All()
	if l.Name != "" {
		all = append(all, Layout{}.All()...)
	}
	return all
}

// Ref is what a field of a record refers to.
type Ref struct {
	Sym    uint32
	Addend int64
}

// Record is one probe site.
type Record struct {
	Probe Ref // the probe object
	Site  Ref // the instruction
}

// Add writes the records of one kind for text section text. It returns the
// symbol of their section, which text is to name to keep them alive, and the
// offset of each record in it.
func (l Layout) Add(e *elfreloc.Edit, m arch.Machine, text int, rela bool, k arch.Kind, records []Record) (sym uint32, offsets []uint64, err error) {
	b := &builder{e: e, m: m, word: e.Object().Layout.Word(), rela: rela, text: text}
	if l.Format == FreeBSD {
		structs := b.section(l.structs(), l.flags(), 2*b.word, len(records))
		targets := make([]Record, len(records))
		for i, r := range records {
			b.pair(structs, i, r)
			targets[i].Probe = Ref{e.SectionSymbol(structs.index), int64(2 * b.word * i)}
		}
		records = targets
	}
	s := b.section(l.Section(k), l.flags(), l.Size(b.word), len(records))
	offsets = make([]uint64, 0, len(records))
	for i, r := range records {
		offsets = append(offsets, uint64(i*l.Size(b.word)))
		switch l.Format {
		case Pairs:
			b.pair(s, i, r)
		case Relative:
			b.relative(s, 8*i, r.Probe)
			b.relative(s, 8*i+4, r.Site)
		case FreeBSD:
			b.absolute(s, i*b.word, r.Probe)
		}
	}
	return e.SectionSymbol(s.index), offsets, b.err
}

// builder fills sections of records.
type builder struct {
	e    *elfreloc.Edit
	m    arch.Machine
	word int
	rela bool
	text int
	err  error
}

type section struct {
	index int
	data  []byte
}

func (b *builder) section(name string, flags elf.SectionFlag, size, n int) section {
	data := make([]byte, size*n)
	align := b.word
	if flags&elf.SHF_WRITE == 0 {
		align = 4
	}
	index := b.e.AddSection(elfreloc.NewSection{
		Name: name, Type: elf.SHT_PROGBITS, Flags: flags, Align: uint64(align), Entsize: uint64(size),
		Data: data, Relocs: true, Expect: 2 * n, Rela: b.rela, Like: b.text,
	})
	return section{index, data}
}

func (b *builder) pair(s section, i int, r Record) {
	b.absolute(s, 2*b.word*i, r.Probe)
	b.absolute(s, 2*b.word*i+b.word, r.Site)
}

func (b *builder) absolute(s section, off int, to Ref) {
	r := elfreloc.Relocation{Offset: uint64(off), Sym: to.Sym, Type: b.m.Traits().Word, Addend: to.Addend}
	if !b.rela {
		b.e.Object().Layout.PutWord(s.data[off:], uint64(to.Addend))
	}
	b.add(s, r)
}

func (b *builder) relative(s section, off int, to Ref) {
	for _, rel := range b.m.Traits().Relative {
		if rel.Sub {
			to = Ref{Sym: b.field(s, off)}
		} else if !b.rela {
			b.e.Object().Layout.Order.PutUint32(s.data[off:], uint32(to.Addend))
		}
		b.add(s, elfreloc.Relocation{Offset: uint64(off), Sym: to.Sym, Type: rel.Type, Addend: to.Addend})
	}
}

// field makes a symbol at a field. What is subtracted must have no addend, and
// get none when `ld -r` merges sections: on RISC-V GNU ld adds it.
func (b *builder) field(s section, off int) uint32 {
	return b.e.AddSymbol(elfreloc.Symbol{
		Name: ".Lsdt_field", Bind: elf.STB_LOCAL, Section: s.index, Value: uint64(off),
	})
}

func (b *builder) add(s section, r elfreloc.Relocation) {
	if err := b.e.AddRelocation(s.index, r); err != nil && b.err == nil {
		b.err = err
	}
}
