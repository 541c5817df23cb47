// Package sites writes the records of probe sites as a source of their own, for
// objects that stay as they are: kernels that patch themselves when they start.
//
// A record stands in another object than its site, so it can name the site only
// by a global symbol. Any global symbol of the same text section will do, with the
// distance from there, because linkers move a section as a whole. What cannot be
// named so is refused:
//
//   - A static function that is alone in its section, as -ffunction-sections makes
//     them, and the cold part of a function where there is nothing but such parts.
//   - A site with code before it that linkers may delete (RISC-V), unless there is
//     a symbol behind that code: the distance would change.
//   - A weak function that other objects define too. Its name is one of theirs.
//   - Copies of an inline function (COMDAT), of which the linker keeps one, unless
//     their records are the same: then those of one copy are written.
//   - A local probe object.
//
// The symbol must not be one that another module interposes, so the records are
// not for shared libraries with sites in functions that they export.
package sites

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/assembly"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// List holds the sites of all objects of a link.
type List struct {
	layout   linkerset.Layout
	prefix   string // of probe objects' names
	word     int
	machine  arch.Machine
	sections []*section
	count    map[string]int // definitions of each global name, in all objects
	groups   map[string]int // groups of each signature, in all objects
	notes    notes.Common
}

// section is a text section with sites.
type section struct {
	object    *elfreloc.Object // closed: for messages
	index     int
	signature string   // of its group, "" for none
	bases     []base   // sorted by value; the best of equals is the last
	deletions []uint64 // places where linkers may delete code, sorted
	sites     []site
}

// base is a global symbol of a text section.
type base struct {
	name  string
	value uint64
	weak  bool
}

type site struct {
	off   uint64
	kind  arch.Kind
	probe string // the probe object
	place string // its function, for messages
}

// New makes an empty list.
func New(layout linkerset.Layout, prefix string) *List {
	return &List{layout: layout, prefix: prefix, count: map[string]int{}, groups: map[string]int{}}
}

// Add takes in an object that a plan without refusals was made of, or nil if it
// holds no stubs. All are of one machine.
func (l *List) Add(o *elfreloc.Object, m arch.Machine, plan *patch.Plan) error {
	l.word = o.Layout.Word()
	if m != nil {
		l.machine = m
	}
	if err := l.notes.Add(o, m); err != nil {
		return err
	}
	syms, err := o.Symbols()
	if err != nil {
		return err
	}
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		if sec, _ := syms.Place(i); sec != 0 {
			l.count[strings.Clone(syms.Name(i))]++
		}
	}
	for i := range o.Sections {
		if o.Sections[i].Type == elf.SHT_GROUP {
			l.groups[signature(o, i, syms)]++
		}
	}
	if plan == nil || len(plan.Sites) == 0 {
		return nil
	}
	return l.addSites(plan, syms)
}

func (l *List) addSites(plan *patch.Plan, syms *elfreloc.Symbols) error {
	o := plan.Scan.Object
	objects, err := plan.Scan.ProbeObjects(l.prefix)
	if err != nil {
		return err
	}
	functions, err := plan.Scan.Functions()
	if err != nil {
		return err
	}
	var sec *section
	for i := range plan.Sites {
		s := &plan.Sites[i]
		target, off := s.Relocs.Target, s.Change.Site.Offset
		if objects.Local(s.Stub) {
			return o.OffsetError(target, off, fmt.Errorf("the probe object %q is local, so that no other object can name it; define it at file scope, and not static", objects.Name(s.Stub)))
		}
		if sec == nil || sec.index != target {
			if sec, err = l.newSection(o, *s.Relocs, syms); err != nil {
				return err
			}
		}
		sec.sites = append(sec.sites, site{off, s.Stub.Kind, objects.Name(s.Stub), functions.Place(target, off)})
	}
	return nil
}

// signature is the name of a group; linkers keep one group of each name.
func signature(o *elfreloc.Object, group int, syms *elfreloc.Symbols) string {
	if sym := int(o.Sections[group].Info); sym < syms.Len() {
		return strings.Clone(syms.Name(sym))
	}
	return ""
}

func (l *List) newSection(o *elfreloc.Object, rs elfreloc.RelocSection, syms *elfreloc.Symbols) (*section, error) {
	s := &section{object: o, index: rs.Target}
	l.sections = append(l.sections, s)
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		if in, _ := syms.Place(i); in != s.index {
			continue
		}
		sym := syms.At(i)
		switch sym.Type {
		case elf.STT_NOTYPE, elf.STT_FUNC, elf.STT_OBJECT:
			if sym.Name != "" && sym.Value <= o.Sections[s.index].Size {
				s.bases = append(s.bases, base{strings.Clone(sym.Name), sym.Value, sym.Bind == elf.STB_WEAK})
			}
		}
	}
	slices.SortFunc(s.bases, func(a, b base) int {
		better := 0
		if a.weak != b.weak {
			better = 1
			if a.weak {
				better = -1
			}
		}
		return cmp.Or(cmp.Compare(a.value, b.value), better, cmp.Compare(b.name, a.name))
	})
	groups, err := o.Groups()
	if err != nil {
		return nil, err
	}
	if group, ok := groups[s.index]; ok {
		s.signature = signature(o, group, syms)
	}
	if deletes := l.machine.Traits().Deletes; deletes != nil {
		err = o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			if slices.Contains(deletes, r.Type) {
				s.deletions = append(s.deletions, r.Offset)
			}
			return nil
		})
		slices.Sort(s.deletions)
	}
	return s, err
}

// Source writes all records, or returns what stands in the way.
func (l *List) Source() ([]byte, []error) {
	records := map[arch.Kind][]linkerset.NamedRecord{}
	var errs []error
	copies := map[string][]*section{}
	for _, s := range l.sections {
		copies[s.signature] = append(copies[s.signature], s)
	}
	for _, s := range l.sections {
		found, bad := l.records(s)
		if len(bad) == 0 && l.groups[s.signature] > 1 {
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
	t := assembly.NewText(l.word, "sdtconvert-sites", "Probe sites of objects that were left as they are, listed by sdtconvert.")
	for _, k := range []arch.Kind{arch.Probe, arch.Enabled} {
		l.layout.Write(t, l.word, k, records[k])
	}
	l.notes.Write(t, l.word)
	if err := t.Err(); err != nil {
		return nil, []error{err}
	}
	return t.Bytes(), nil
}

// records names all sites of a section, or says why it cannot.
func (l *List) records(s *section) (records []linkerset.NamedRecord, errs []error) {
	for _, site := range s.sites {
		b, err := l.base(s, site.off)
		if err != nil {
			errs = append(errs, s.refuse(site, err))
			continue
		}
		records = append(records, linkerset.NamedRecord{Probe: site.probe, Base: b.name, Offset: int64(site.off - b.value)})
	}
	return records, errs
}

func (s *section) refuse(site site, err error) error {
	where := ""
	if site.place != "" {
		where = "in " + site.place + ": "
	}
	return s.object.OffsetError(s.index, site.off, fmt.Errorf("%sa site of %q that no other object can name: %w", where, site.probe, err))
}

// base finds the nearest symbol before a site that names it, or else the nearest
// behind it.
func (l *List) base(s *section, off uint64) (*base, error) {
	var before, behind *base
	foreign := ""
	for i := range s.bases {
		b := &s.bases[i]
		if !l.names(s, b) {
			foreign = b.name
			continue
		}
		if b.value <= off {
			before = b
		} else if behind == nil || b.value == behind.value {
			behind = b
		}
	}
	switch {
	case before != nil && !s.deletes(before.value, off):
		return before, nil
	case behind != nil && !s.deletes(off, behind.value):
		return behind, nil
	case before != nil || behind != nil:
		return nil, fmt.Errorf("linkers may delete code between it and every global symbol; compile with -mno-relax")
	case foreign != "":
		return nil, fmt.Errorf("%q is defined in several objects", foreign)
	}
	return nil, fmt.Errorf("its section has no global symbol; make the function global, or compile with -fno-function-sections, -fno-reorder-functions and -fno-reorder-blocks-and-partition")
}

// names reports whether a symbol's name is that of its own definition in the
// finished program, or of an equal copy.
func (l *List) names(s *section, b *base) bool {
	n := l.count[b.name]
	if s.signature != "" {
		return n == l.groups[s.signature]
	}
	return n == 1 || !b.weak // which wins over weak ones
}

// deletes reports whether linkers may delete code from one offset up to another.
func (s *section) deletes(from, to uint64) bool {
	i, _ := slices.BinarySearch(s.deletions, from)
	return i < len(s.deletions) && s.deletions[i] < to
}

// checkCopies refuses copies of an inline function that do not all have the same
// sites, as it is not known which of them is kept.
func (l *List) checkCopies(s *section, records []linkerset.NamedRecord, copies []*section) []error {
	if n := l.groups[s.signature]; len(copies) != n {
		return []error{s.refuse(s.sites[0], fmt.Errorf("%d objects hold a copy of %q, and only %d of the copies have sites", n, s.signature, len(copies)))}
	}
	for _, c := range copies[1:] {
		other, bad := l.records(c)
		if len(bad) > 0 {
			return bad
		}
		sameKind := func(a, b site) bool { return a.kind == b.kind }
		if !slices.Equal(records, other) || !slices.EqualFunc(s.sites, c.sites, sameKind) {
			return []error{s.refuse(s.sites[0], fmt.Errorf("the copy of %q in %s has other sites; compile both with the same flags", s.signature, c.object.Name))}
		}
	}
	return nil
}
