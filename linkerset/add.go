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
// in sections of their own and of the group that the text section is in. There are n of
// them, which record makes: when the edit is saved and while the output is written, more
// than once and by several goroutines. Add returns what the text section has to refer to in
// order to keep them alive.
func (l Layout) Add(e *elfreloc.Edit, m arch.Machine, text elfreloc.RelocSection, k arch.Kind, n int, record func(i int) Record) KeepAlive {
	w := &writer{e: e, m: m, word: e.Object().Encoding.Word(), text: text, len: n, record: record}
	var s section
	for _, d := range l.Arrays(k, w.word) {
		s = w.add(d, s)
	}
	return KeepAlive{SectionMark(e, m, s.index), s.entsize}
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

// writer adds sections of records.
type writer struct {
	e      *elfreloc.Edit
	m      arch.Machine
	word   int // of an address, bytes
	text   elfreloc.RelocSection
	len    int
	record func(i int) Record
}

// section is one that was added.
type section struct {
	index   int
	entsize int // bytes
}

// add adds a section with an entry for each record. before is the section before
// it.
func (w *writer) add(d Array, before section) section {
	s := section{entsize: d.Entsize(w.word)}
	t := &entries{writer: w, size: s.entsize, fields: w.fields(d), before: before}
	s.index = w.e.AddSection(elfreloc.NewSection{
		Name: d.Name, Type: elf.SHT_PROGBITS, Flags: d.Flags, Align: uint64(d.Align), Entsize: uint64(s.entsize),
		Table:  &elfreloc.Table{Len: w.len, PerEntry: len(t.fields), Zero: w.text.Rela, Make: t.entry},
		Relocs: true, Rela: w.text.Rela, GroupOf: w.text.Target,
	})
	t.addSymbols(s.index)
	return s
}

// field is a relocation of an entry.
type field struct {
	Field
	off int // in the entry, bytes
	typ uint32
	sub bool // names the field itself (arch.RelativeReloc)
}

// fields lists the relocations of each entry of a section.
func (w *writer) fields(d Array) (all []field) {
	off := 0
	for _, f := range d.Entry {
		if f.Distance {
			for _, rel := range w.m.Traits().Relative {
				all = append(all, field{f, off, rel.Type, rel.Sub})
			}
		} else {
			all = append(all, field{f, off, w.m.Traits().Word, false})
		}
		off += f.Size(w.word)
	}
	return all
}

// entries makes the entries of a section of records.
type entries struct {
	*writer
	size      int // of each, bytes
	fields    []field
	before    section
	structure uint32 // symbol of the section before, if entries refer to it
	// own is the first of the symbols at fields (addField), and owned how many an entry has.
	own, owned uint32
}

// addSymbols adds the symbols that relocations of a section need.
func (t *entries) addSymbols(sec int) {
	added := uint32(0)
	for i := range t.len {
		for _, f := range t.fields {
			if f.To == ToStructure && t.structure == 0 {
				t.structure = t.e.SectionSymbol(t.before.index)
			}
			if f.sub {
				t.own = addField(t.e, sec, uint64(i*t.size+f.off)) - added
				added++
			}
		}
	}
	if added > 0 {
		t.owned = added / uint32(t.len)
	}
}

// entry makes entry i and its relocations.
func (t *entries) entry(i int, b []byte, relocs []elfreloc.Relocation) {
	record, own := t.record(i), t.own+uint32(i)*t.owned
	for k, f := range t.fields {
		to := record.Probe
		switch f.To {
		case ToSite:
			to = record.Site
		case ToStructure:
			to = Ref{t.structure, int64(i * t.before.entsize)}
		}
		if f.sub {
			to = Ref{Sym: own}
			own++
		} else if !t.text.Rela {
			t.store(f, b, to.Addend)
		}
		relocs[k] = elfreloc.Relocation{Offset: uint64(i*t.size + f.off), Sym: to.Sym, Type: f.typ, Addend: to.Addend}
	}
}

// store puts the addend of a relocation into its field.
func (t *entries) store(f field, b []byte, addend int64) {
	if f.Distance {
		t.e.Object().Encoding.Order.PutUint32(b[f.off:], uint32(addend))
	} else {
		t.e.Object().Encoding.PutWord(b[f.off:], uint64(addend))
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
