package emit

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/linkerset"
)

// Source writes all records, or returns what stands in the way.
func (l *RecordList) Source() ([]byte, []error) {
	records := map[arch.Kind][]sourceRecord{}
	var errs []error
	copies := map[string][]*recordSection{}
	for _, s := range l.sections {
		l.sift(s)
		copies[s.signature] = append(copies[s.signature], s)
	}
	for _, s := range l.sections {
		found, bad := s.nameSites()
		if len(bad) == 0 && s.signature != "" && l.groups[s.signature] > 1 {
			if s != copies[s.signature][0] {
				continue
			}
			bad = l.checkCopies(s, found, copies[s.signature])
		}
		errs = append(errs, bad...)
		for i, r := range found {
			records[s.sites[i].kind] = append(records[s.sites[i].kind], r)
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	t := newSourceText(l.word, "sdtconvert-sites", "Probe sites of objects that were left as they are, listed by sdtconvert.")
	for k := range arch.Kinds {
		writeRecords(t, l.layout, l.word, k, records[k])
	}
	l.notes.Write(t, l.word)
	if err := t.Err(); err != nil {
		return nil, []error{err}
	}
	return t.Bytes(), nil
}

// nameSites names all sites of a section, or says why it cannot.
func (s *recordSection) nameSites() (records []sourceRecord, errs []error) {
	for _, site := range s.sites {
		b, err := s.base(site.off)
		if err != nil {
			errs = append(errs, s.refuse(site, err))
			continue
		}
		records = append(records, sourceRecord{probe: site.probe, base: b.name, offset: int64(site.off - b.value)})
	}
	return records, errs
}

func (s *recordSection) refuse(site recordSite, err error) error {
	where := ""
	if site.place != "" {
		where = "in " + site.place + ": "
	}
	return s.object.OffsetError(s.index, site.off, fmt.Errorf("%sa site of %q that no other object can name: %w", where, site.probe, err))
}

// base finds the nearest symbol before a site that names it, or else the nearest
// behind it.
func (s *recordSection) base(off uint64) (*baseSymbol, error) {
	bases := s.bases
	var before, behind *baseSymbol
	first, _ := slices.BinarySearchFunc(bases, off+1, func(b baseSymbol, off uint64) int { return cmp.Compare(b.value, off) })
	if first > 0 {
		before = &bases[first-1]
	}
	for i := first; i < len(bases) && bases[i].value == bases[first].value; i++ {
		behind = &bases[i]
	}
	switch {
	case before != nil && !s.deletes(before.value, off):
		return before, nil
	case behind != nil && !s.deletes(off, behind.value):
		return behind, nil
	case before != nil || behind != nil:
		return nil, errors.New("linkers may delete code between it and every global symbol; compile with -mno-relax")
	case s.foreign != "":
		return nil, fmt.Errorf("%q is defined in several objects", s.foreign)
	case s.moded != "":
		return nil, fmt.Errorf("what is named by %q is not of the usual instruction set; compile for that, or convert the object", s.moded)
	case s.described:
		return nil, errors.New("the symbols of functions stand for their descriptors, and none for code; convert the object instead")
	}
	return nil, errors.New("its section has no global symbol; make the function global, or compile with -fno-function-sections, -fno-reorder-functions and -fno-reorder-blocks-and-partition")
}

// sift leaves a section the symbols that name their own definitions, and notes one that does not.
func (l *RecordList) sift(s *recordSection) {
	s.bases = slices.DeleteFunc(s.bases, func(b baseSymbol) bool {
		if l.names(s, &b) {
			return false
		}
		s.foreign = b.name
		return true
	})
}

// names reports whether a symbol's name is that of its own definition in the
// finished program, or of an equal copy.
func (l *RecordList) names(s *recordSection, b *baseSymbol) bool {
	n := l.count[b.name]
	if s.signature != "" {
		return n == l.groups[s.signature]
	}
	return n == 1 || !b.weak // which wins over weak ones
}

// deletes reports whether linkers may delete code from one offset up to another.
func (s *recordSection) deletes(from, to uint64) bool {
	i, _ := slices.BinarySearch(s.deletions, from)
	return i < len(s.deletions) && s.deletions[i] < to
}

// checkCopies refuses copies of an inline function that do not all have the same
// sites, as it is not known which of them is kept.
func (l *RecordList) checkCopies(s *recordSection, records []sourceRecord, copies []*recordSection) []error {
	if n := l.groups[s.signature]; len(copies) != n {
		return []error{s.refuse(s.sites[0], fmt.Errorf("%d objects hold a copy of %q, and only %d of the copies have sites", n, s.signature, len(copies)))}
	}
	for _, c := range copies[1:] {
		copied, bad := c.nameSites()
		if len(bad) > 0 {
			return bad
		}
		sameKind := func(a, b recordSite) bool { return a.kind == b.kind }
		if !slices.Equal(records, copied) || !slices.EqualFunc(s.sites, c.sites, sameKind) {
			return []error{s.refuse(s.sites[0], fmt.Errorf("the copy of %q in %s has other sites; compile both with the same flags", s.signature, c.object.Name))}
		}
	}
	return nil
}

// sourceRecord is that of a site in another object, both fields of which have to be
// named by symbols.
type sourceRecord struct {
	probe  string // the probe object
	base   string // a symbol in the site's section
	offset int64  // of the site from there, bytes
}

// writeRecords writes the records of one kind as source.
func writeRecords(t *sourceText, l linkerset.Layout, word int, k arch.Kind, records []sourceRecord) {
	if len(records) == 0 {
		return
	}
	w := &recordWriter{t: t, hidden: map[string]bool{}}
	for _, s := range l.Arrays(k, word) {
		t.Section(Section{Name: s.Name, Type: elf.SHT_PROGBITS, Flags: s.Flags, Align: uint64(s.Align)})
		for i := range records {
			if s.Label != "" {
				t.Label(entryLabel(s.Label, i))
			}
			for _, f := range s.Entry {
				w.field(f, i, &records[i])
			}
		}
		w.label = s.Label
	}
}

type recordWriter struct {
	t      *sourceText
	hidden map[string]bool // probe objects
	label  string          // of the entries of the section before
}

func entryLabel(begin string, entry int) string { return fmt.Sprintf("%s%d", begin, entry) }

// field writes a field of the entry for a record.
func (w *recordWriter) field(f linkerset.Field, entry int, r *sourceRecord) {
	name, offset := r.probe, int64(0)
	switch f.To {
	case linkerset.ToSite:
		name, offset = r.base, r.offset
	case linkerset.ToStructure:
		name = entryLabel(w.label, entry)
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
