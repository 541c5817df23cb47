package records

import (
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/internal/emit/assembly"
	"sdtconvert/linkerset"
)

// record is that of a site in another object, both fields of which have to be
// named by symbols.
type record struct {
	probe  string // the probe object
	base   string // a symbol in the site's section
	offset int64  // of the site from there, bytes
}

// write writes the records of one kind as source.
func write(t *assembly.Text, l linkerset.Layout, word int, k arch.Kind, records []record) {
	if len(records) == 0 {
		return
	}
	w := &writer{t: t, hidden: map[string]bool{}}
	for _, s := range l.Arrays(k, word) {
		t.Section(assembly.Section{Name: s.Name, Type: elf.SHT_PROGBITS, Flags: s.Flags, Align: uint64(s.Align)})
		for i := range records {
			if s.Label != "" {
				t.Label(label(s.Label, i))
			}
			for _, f := range s.Entry {
				w.field(f, i, &records[i])
			}
		}
		w.label = s.Label
	}
}

type writer struct {
	t      *assembly.Text
	hidden map[string]bool // probe objects
	label  string          // of the entries of the section before
}

func label(begin string, entry int) string { return fmt.Sprintf("%s%d", begin, entry) }

// field writes a field of the entry for a record.
func (w *writer) field(f linkerset.Field, entry int, r *record) {
	name, offset := r.probe, int64(0)
	switch f.To {
	case linkerset.ToSite:
		name, offset = r.base, r.offset
	case linkerset.ToStructure:
		name = label(w.label, entry)
	}
	if !f.Distance {
		w.t.Word(name, offset)
		return
	}
	if f.To == linkerset.ToProbe && !w.hidden[name] { // a distance reaches into no other module
		w.t.Hide(name)
		w.hidden[name] = true
	}
	w.t.Distance(name, offset)
}
