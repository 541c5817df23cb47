package linkerset

import (
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/internal/emit/assembly"
)

// NamedRecord is the record of a site in another object, both fields of which
// have to be named by symbols.
type NamedRecord struct {
	Probe  string // the probe object
	Base   string // a symbol in the site's section
	Offset int64  // of the site from there, bytes
}

// Write writes the records of one kind as source.
func (l Layout) Write(t *assembly.Text, word int, k arch.Kind, records []NamedRecord) {
	if len(records) == 0 {
		return
	}
	section := func(name string, align int) {
		t.Section(assembly.Section{Name: name, Type: elf.SHT_PROGBITS, Flags: l.flags(), Align: uint64(align)})
	}
	pairs := func(label string) {
		for i, r := range records {
			if label != "" {
				t.Label(fmt.Sprintf("%s%d", label, i))
			}
			t.Word(r.Probe, 0)
			t.Word(r.Base, r.Offset)
		}
	}
	switch l.Format {
	case Pairs:
		section(l.Section(k), word)
		pairs("")
	case Relative:
		hidden := map[string]bool{}
		section(l.Section(k), 4)
		for _, r := range records {
			if !hidden[r.Probe] { // a distance reaches into no other module
				t.Hide(r.Probe)
				hidden[r.Probe] = true
			}
			t.Distance(r.Probe, 0)
			t.Distance(r.Base, r.Offset)
		}
	case FreeBSD:
		label := fmt.Sprintf(".Lsdt_%d_", k)
		section(l.structs(), word)
		pairs(label)
		section(l.Section(k), word)
		for i := range records {
			t.Word(fmt.Sprintf("%s%d", label, i), 0)
		}
	}
}
