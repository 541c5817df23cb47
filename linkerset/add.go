package linkerset

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// SymbolRef is what a field refers to: a symbol of the object, and a distance from it in
// bytes. Sym is an index as elfreloc.Edit has them.
type SymbolRef struct {
	Sym    uint32
	Addend int64
}

// Record is one probe site.
type Record struct {
	Probe SymbolRef // the probe object
	Site  SymbolRef // the instruction
}

// Add writes the records of one kind for the text section that text applies to,
// in sections of their own and of the group that the text section is in. It returns what the
// text section has to refer to in order to keep the records alive.
func (l Layout) Add(e *elfreloc.Edit, m arch.Machine, text elfreloc.RelocSection, k arch.Kind, records []Record) (RecordAnchors, error) {
	w := &writer{e: e, m: m, word: e.Object().Encoding.Word(), text: text, records: records}
	var s section
	for _, d := range l.Arrays(k, w.word) {
		var err error
		if s, err = w.addArray(d, s); err != nil {
			return RecordAnchors{}, err
		}
	}
	return RecordAnchors{SectionMark(e, m, s.index), s.entsize}, nil
}

// RecordAnchors are what the text section refers to in order to keep records alive. The zero
// value is for no records.
type RecordAnchors struct {
	sym  uint32 // of the section that holds them
	size int    // of each, bytes
}

// At returns what keeps record i alive.
func (a RecordAnchors) At(i int) SymbolRef { return SymbolRef{a.sym, int64(i * a.size)} }

// sectionMark is the name of symbols that SectionMark makes, local ones.
const sectionMark = ".Lsdt_section"

// SectionMark returns a symbol by which relocations that do nothing (Traits.None) name a
// section, to keep it alive.
func SectionMark(e *elfreloc.Edit, m arch.Machine, sec int) uint32 {
	if !m.Traits().NamedNone {
		return e.SectionSymbol(sec)
	}
	return e.AddSymbol(elfreloc.Symbol{Name: sectionMark, Bind: elf.STB_LOCAL, Section: sec})
}

// writer adds sections of records.
type writer struct {
	e       *elfreloc.Edit
	m       arch.Machine
	word    int // of an address, bytes
	text    elfreloc.RelocSection
	records []Record
}

// section is one that was added.
type section struct {
	index   int
	entsize int // bytes
}

// addArray adds a section with an entry for each record. structures is the section before it,
// whose entries these may refer to.
func (w *writer) addArray(d Array, structures section) (section, error) {
	s := section{entsize: d.Entsize(w.word)}
	data := make([]byte, len(w.records)*s.entsize)
	s.index = w.e.AddSection(elfreloc.NewSection{
		Name: d.Name, Type: elf.SHT_PROGBITS, Flags: d.Flags, Align: uint64(d.Align), Entsize: uint64(s.entsize),
		Data: data, Relocs: true, RelocCount: len(w.records) * len(d.Entry), Rela: w.text.Rela, GroupOf: w.text.Target,
	})
	offset := 0
	for i, record := range w.records {
		for _, f := range d.Entry {
			to := record.Probe
			switch f.To {
			case ToSite:
				to = record.Site
			case ToStructure:
				to = SymbolRef{w.e.SectionSymbol(structures.index), int64(i * structures.entsize)}
			}
			if err := w.field(f, s.index, data, offset, to); err != nil {
				return s, err
			}
			offset += f.Size(w.word)
		}
	}
	return s, nil
}

// field adds the relocations of a field, which is at an offset of the data of a section.
func (w *writer) field(f Field, sec int, data []byte, offset int, to SymbolRef) error {
	if !w.text.Rela && f.Distance {
		w.e.Object().Encoding.Order.PutUint32(data[offset:], uint32(to.Addend))
	} else if !w.text.Rela {
		w.e.Object().Encoding.PutWord(data[offset:], uint64(to.Addend))
	}
	if f.Distance {
		return AddDistance(w.e, w.m, sec, uint64(offset), to)
	}
	return w.e.AddRelocation(sec, elfreloc.Relocation{Offset: uint64(offset), Sym: to.Sym, Type: w.m.Traits().Word, Addend: to.Addend})
}

// AddDistance adds the relocations of a field of 32 bits, at an offset of a section,
// that holds the distance from itself to something. Where the section's relocations are
// SHT_REL, the field has to hold the addend.
func AddDistance(e *elfreloc.Edit, m arch.Machine, sec int, off uint64, to SymbolRef) error {
	for _, rel := range m.Traits().Relative {
		r := elfreloc.Relocation{Offset: off, Sym: to.Sym, Type: rel.Type, Addend: to.Addend}
		if rel.Sub {
			r.Sym, r.Addend = addField(e, sec, off), 0
		}
		if err := e.AddRelocation(sec, r); err != nil {
			return err
		}
	}
	return nil
}

// addField adds a symbol at a field. A symbol that is subtracted must have addend 0, because GNU ld adds it on RISC-V;
// a section's symbol would get an addend when `ld -r` merges sections.
func addField(e *elfreloc.Edit, sec int, off uint64) uint32 {
	return e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_field", Bind: elf.STB_LOCAL, Section: sec, Value: off})
}
