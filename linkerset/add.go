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
	encoding := e.Object().Encoding
	structures, structureSize := 0, 0 // the section before, whose entries these may refer to
	for _, d := range l.Arrays(k, encoding.Word()) {
		size := d.Entsize(encoding.Word())
		data := make([]byte, len(records)*size)
		sec := e.AddSection(elfreloc.NewSection{
			Name: d.Name, Type: elf.SHT_PROGBITS, Flags: d.Flags, Align: uint64(d.Align), Entsize: uint64(size),
			Data: data, Relocs: true, RelocCount: len(records) * len(d.Entry), Rela: text.Rela, GroupOf: text.Target,
		})
		offset := 0
		for i, record := range records {
			for _, f := range d.Entry {
				to := record.Probe
				switch f.To {
				case ToSite:
					to = record.Site
				case ToStructure:
					to = SymbolRef{e.SectionSymbol(structures), int64(i * structureSize)}
				}
				if !text.Rela && f.Distance {
					encoding.Order.PutUint32(data[offset:], uint32(to.Addend))
				} else if !text.Rela {
					encoding.PutWord(data[offset:], uint64(to.Addend))
				}
				if err := addField(e, m, f, sec, uint64(offset), to); err != nil {
					return RecordAnchors{}, err
				}
				offset += f.Size(encoding.Word())
			}
		}
		structures, structureSize = sec, size
	}
	return RecordAnchors{SectionMark(e, m, structures), structureSize}, nil
}

// addField adds the relocations of a field, which is at an offset of a section.
func addField(e *elfreloc.Edit, m arch.Machine, f Field, sec int, off uint64, to SymbolRef) error {
	if f.Distance {
		return AddDistance(e, m, sec, off, to)
	}
	return e.AddRelocation(sec, elfreloc.Relocation{Offset: off, Sym: to.Sym, Type: m.Traits().Word, Addend: to.Addend})
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

// AddDistance adds the relocations of a field of 32 bits, at an offset of a section,
// that holds the distance from itself to something. Where the section's relocations are
// SHT_REL, the field has to hold the addend.
func AddDistance(e *elfreloc.Edit, m arch.Machine, sec int, off uint64, to SymbolRef) error {
	for _, rel := range m.Traits().Relative {
		r := elfreloc.Relocation{Offset: off, Sym: to.Sym, Type: rel.Type, Addend: to.Addend}
		if rel.Sub {
			// A symbol that is subtracted must have addend 0, because GNU ld adds it on RISC-V; a section's symbol would
			// get an addend when `ld -r` merges sections.
			r.Sym, r.Addend = e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_field", Bind: elf.STB_LOCAL, Section: sec, Value: off}), 0
		}
		if err := e.AddRelocation(sec, r); err != nil {
			return err
		}
	}
	return nil
}
