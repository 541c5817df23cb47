package linkerset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Entry is a record as an object holds it.
type Entry struct {
	Layout  Layout
	Kind    arch.Kind
	Section int    // of the record
	Offset  uint64 // of the record in Section
	Probe   string // the name of the probe object's symbol
	Text    int    // the section of the site
	Site    uint64 // its offset there
}

// Read returns the records of an object in a layout, in the order of the
// sections and of the records in each. A record that is not made of the
// relocations that Add makes is an error.
func (l Layout) Read(o *elfreloc.Object, m arch.Machine) ([]Entry, error) {
	rels, err := o.RelocSections()
	if err != nil {
		return nil, err
	}
	var entries []Entry
	r := &reader{o: o, m: m, fields: map[int]map[uint64]field{}}
	for _, rs := range rels {
		if k, ok := l.IsRecordSection(&o.Sections[rs.Target]); ok {
			found, err := r.section(l, k, rs.Target)
			if err != nil {
				return nil, err
			}
			entries = append(entries, found...)
		}
	}
	return entries, nil
}

type reader struct {
	o      *elfreloc.Object
	m      arch.Machine
	fields map[int]map[uint64]field // by section and offset
	places map[place]string         // the first symbol of each place that has one
}

type place struct {
	section int
	off     uint64
}

// field is a relocated field: the section and offset that it refers to, and
// the name of its symbol.
type field struct {
	section int
	off     uint64
	symbol  elfreloc.Symbol
}

func (r *reader) section(l Layout, k arch.Kind, sec int) ([]Entry, error) {
	size := uint64(l.Size(r.o.Layout.Word()))
	if r.o.Sections[sec].Size%size != 0 {
		return nil, r.o.SectionError(sec, fmt.Errorf("%d bytes of records of %d bytes", r.o.Sections[sec].Size, size))
	}
	var entries []Entry
	for off := uint64(0); off < r.o.Sections[sec].Size; off += size {
		e := Entry{Layout: l, Kind: k, Section: sec, Offset: off}
		record, at, half := sec, off, size/2
		if l.Format == FreeBSD {
			p, err := r.field(sec, off)
			if err != nil {
				return nil, err
			}
			record, at, half = p.section, p.off, uint64(r.o.Layout.Word())
		}
		probe, err := r.field(record, at)
		if err != nil {
			return nil, err
		}
		site, err := r.field(record, at+half)
		if err != nil {
			return nil, err
		}
		if site.section <= 0 || !r.o.Sections[site.section].Executable() {
			return nil, r.o.OffsetError(record, at, fmt.Errorf("a record of a site that is not in code"))
		}
		if e.Probe, err = r.probeName(probe); err != nil {
			return nil, err
		}
		e.Text, e.Site = site.section, site.off
		entries = append(entries, e)
	}
	return entries, nil
}

// field returns what the relocation at an offset refers to.
func (r *reader) field(sec int, off uint64) (field, error) {
	if r.fields[sec] == nil {
		if err := r.readFields(sec); err != nil {
			return field{}, err
		}
	}
	f, ok := r.fields[sec][off]
	if !ok {
		return field{}, r.o.OffsetError(sec, off, fmt.Errorf("a record without a relocation"))
	}
	return f, nil
}

func (r *reader) readFields(sec int) error {
	fields := make(map[uint64]field)
	r.fields[sec] = fields
	rels, err := r.o.RelocSections()
	if err != nil {
		return err
	}
	syms, err := r.o.Symbols()
	if err != nil {
		return err
	}
	data, err := r.o.Data(sec)
	if err != nil {
		return err
	}
	for _, rs := range rels {
		if rs.Target != sec {
			continue
		}
		err := r.o.EachRelocation(rs, func(_ int, rel elfreloc.Relocation) error {
			width, ok := r.width(rel.Type)
			if !ok {
				return nil
			}
			if rel.Implicit && rel.Offset <= uint64(len(data)) && uint64(len(data))-rel.Offset >= uint64(width) {
				rel.Addend = r.addend(data[rel.Offset:], width)
			}
			s := syms.At(int(rel.Sym))
			fields[rel.Offset] = field{s.Section, s.Value + uint64(rel.Addend), s}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// width is the length of the field of a relocation type that records use.
func (r *reader) width(typ uint32) (int, bool) {
	t := r.m.Traits()
	if typ == t.Word {
		return r.o.Layout.Word(), true
	}
	for _, rel := range t.Relative {
		if rel.Type == typ && !rel.Sub {
			return 4, true
		}
	}
	return 0, false
}

func (r *reader) addend(b []byte, width int) int64 {
	if width == 4 {
		return int64(int32(r.o.Layout.Order.Uint32(b)))
	}
	return int64(r.o.Layout.GetWord(b))
}

// probeName names a probe object: by its own symbol, or, when the record goes
// through the symbol of its section, by the symbol that stands there.
func (r *reader) probeName(f field) (string, error) {
	if f.symbol.Name != "" {
		return f.symbol.Name, nil
	}
	if r.places == nil {
		if err := r.readPlaces(); err != nil {
			return "", err
		}
	}
	return r.places[place{f.section, f.off}], nil
}

func (r *reader) readPlaces() error {
	syms, err := r.o.Symbols()
	if err != nil {
		return err
	}
	r.places = make(map[place]string)
	for i := 1; i < syms.Len(); i++ {
		s := syms.At(i)
		p := place{s.Section, s.Value}
		label := strings.HasPrefix(s.Name, "$") || strings.HasPrefix(s.Name, ".L") // mapping symbols and local labels
		if _, taken := r.places[p]; !taken && s.Defined() && s.Name != "" && !label {
			r.places[p] = s.Name
		}
	}
	return nil
}

// Sort orders entries by their sites.
func Sort(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Site, b.Site))
	})
}
