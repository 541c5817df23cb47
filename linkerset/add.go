package linkerset

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Ref is what a field refers to: a symbol of the object, and a distance from it in
// bytes. Sym is an index as elfreloc.Edit has them.
type Ref struct {
	Sym    uint32
	Addend int64
}

// Record is one probe site.
type Record struct {
	Probe Ref // the probe object
	Site  Ref // the instruction
}

// Add writes the records of one kind for the text section that text applies to,
// in sections of their own and of the group that the text section is in. It
// returns what the text section has to refer to in order to keep them alive. Errors are
// *elfreloc.Error.
func (l Layout) Add(e *elfreloc.Edit, m arch.Machine, text elfreloc.RelocSection, k arch.Kind, records []Record) (KeepAlive, error) {
	w := &writer{e: e, m: m, word: e.Object().Encoding.Word(), text: text}
	var s section
	for _, d := range l.Arrays(k, w.word) {
		s = w.add(d, records, s)
	}
	return KeepAlive{SectionMark(e, m, s.index), s.entsize}, w.err
}

// KeepAlive is what the text section refers to in order to keep records alive. The zero
// value is for no records.
type KeepAlive struct {
	sym  uint32 // of the section that holds them
	size int    // of each, bytes
}

// Ref returns what keeps record i alive.
func (k KeepAlive) Ref(i int) Ref { return Ref{k.sym, int64(i * k.size)} }

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

// writer fills sections of records.
type writer struct {
	e    *elfreloc.Edit
	m    arch.Machine
	word int
	text elfreloc.RelocSection
	err  error
}

// section is one that was added.
type section struct {
	index   int
	entsize int
	data    []byte
}

// add adds a section with an entry for each record. before is the section before
// it.
func (w *writer) add(d Array, records []Record, before section) section {
	size := d.Entsize(w.word)
	s := section{entsize: size, data: make([]byte, size*len(records))}
	s.index = w.e.AddSection(elfreloc.NewSection{
		Name: d.Name, Type: elf.SHT_PROGBITS, Flags: d.Flags, Align: uint64(d.Align), Entsize: uint64(size),
		Data: s.data, Relocs: true, Rela: w.text.Rela, GroupOf: w.text.Target,
	})
	for i, r := range records {
		off := i * size
		for _, f := range d.Entry {
			to := r.Probe
			switch f.To {
			case ToSite:
				to = r.Site
			case ToStructure:
				to = Ref{w.e.SectionSymbol(before.index), int64(i * before.entsize)}
			}
			if f.Distance {
				w.distance(s, off, to)
			} else {
				w.address(s, off, to)
			}
			off += f.Size(w.word)
		}
	}
	return s
}

func (w *writer) address(s section, off int, to Ref) {
	if !w.text.Rela {
		w.e.Object().Encoding.PutWord(s.data[off:], uint64(to.Addend))
	}
	w.keep(w.e.AddRelocation(s.index, elfreloc.Relocation{Offset: uint64(off), Sym: to.Sym, Type: w.m.Traits().Word, Addend: to.Addend}))
}

func (w *writer) distance(s section, off int, to Ref) {
	if !w.text.Rela {
		w.e.Object().Encoding.Order.PutUint32(s.data[off:], uint32(to.Addend))
	}
	w.keep(AddDistance(w.e, w.m, s.index, uint64(off), to))
}

// keep keeps the first error.
func (w *writer) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

// AddDistance adds the relocations of a field of 32 bits, at an offset of a section,
// that holds the distance from itself to something. Where the section's relocations are
// SHT_REL, the field has to hold the addend.
func AddDistance(e *elfreloc.Edit, m arch.Machine, sec int, off uint64, to Ref) error {
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

// addField makes a symbol at a field. What is subtracted must have no addend, and
// get none when `ld -r` merges sections: on RISC-V GNU ld adds it.
func addField(e *elfreloc.Edit, sec int, off uint64) uint32 {
	return e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_field", Bind: elf.STB_LOCAL, Section: sec, Value: off})
}
