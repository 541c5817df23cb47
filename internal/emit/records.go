package emit

// A RecordList writes the records of probe sites as a source of their own, for
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

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// RecordList holds the sites of all objects of a link.
type RecordList struct {
	opts     patch.Options
	layout   linkerset.Layout // of the last object
	word     int
	machine  arch.Machine
	sections []*recordSection
	count    map[string]int // definitions of each global name, in all objects
	groups   map[string]int // groups of each signature, in all objects
	notes    LinkNotes
}

// recordSection is a text section with sites.
type recordSection struct {
	object    *elfreloc.Object // closed: for messages
	index     int
	signature string       // of its group, "" for none
	bases     []baseSymbol // sorted by value; the best of equals is the last
	foreign   string       // a symbol that names no definition alone, "" for none
	moded     string       // a function whose symbol has bits beside its address, "" for none
	described bool         // symbols of functions stand for descriptors
	deletions []uint64     // places where linkers may delete code, sorted
	sites     []recordSite
}

// baseSymbol is a global symbol of a text section.
type baseSymbol struct {
	name  string
	value uint64
	weak  bool
}

type recordSite struct {
	off   uint64
	kind  arch.Kind
	probe string // the probe object
	place string // its function, for messages
}

// NewRecordList makes an empty list. What the options say of names, probe objects and the layout
// of records counts.
func NewRecordList(opts patch.Options) *RecordList {
	return &RecordList{opts: opts, count: map[string]int{}, groups: map[string]int{}}
}

// Add takes in an object. All are of one machine. If some site of it could not be
// converted, that is the error: what cannot be switched off cannot be switched on
// either.
func (l *RecordList) Add(o *elfreloc.Object, m arch.Machine) error {
	scan, err := patch.Find(o, m, l.opts)
	if err != nil {
		return err
	}
	plan, err := patch.NewPlan(scan)
	if err != nil {
		return err
	}
	if err := errors.Join(plan.Errors()...); err != nil {
		return err
	}
	l.layout = scan.Settings.Layout
	l.word = o.Encoding.Word()
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
		if sym := syms.At(i); sym.Section != 0 {
			l.count[strings.Clone(sym.Name)]++
		}
	}
	for i := range o.Sections {
		if o.Sections[i].Type == elf.SHT_GROUP {
			l.groups[groupSignature(o, i, syms)]++
		}
	}
	if len(plan.Sites) == 0 {
		return nil
	}
	return l.addSites(plan, syms)
}

func (l *RecordList) addSites(plan *patch.Plan, syms *elfreloc.Symbols) error {
	o := plan.Scan.Object
	objects, err := plan.Scan.ProbeObjects()
	if err != nil {
		return err
	}
	functions, err := plan.Scan.Functions()
	if err != nil {
		return err
	}
	sections := map[int]*recordSection{}
	for _, s := range plan.Sites {
		target, off := s.Relocs.Target, s.Change.Site.Offset
		if objects.Local(s.Stub) {
			return o.OffsetError(target, off, fmt.Errorf("the probe object %q is local, so that no other object can name it; define it at file scope, and not static", objects.Name(s.Stub)))
		}
		sec := sections[target]
		if sec == nil {
			sec = &recordSection{object: o, index: target, described: plan.Scan.Machine.Traits().Descriptors != ""}
			if sec.deletions, err = l.deletions(o, s.Relocs); err != nil {
				return err
			}
			sections[target], l.sections = sec, append(l.sections, sec)
		}
		sec.sites = append(sec.sites, recordSite{off, s.Stub.Kind, objects.Name(s.Stub), functions.Place(target, off)})
	}
	return findBases(o, syms, sections, l.machine.Traits().Mode)
}

// groupSignature returns the name of a group; linkers keep one group of each name.
func groupSignature(o *elfreloc.Object, group int, syms *elfreloc.Symbols) string {
	if sym := int(o.Sections[group].Info); sym < syms.Len() {
		return strings.Clone(syms.Name(sym))
	}
	return ""
}

// deletions finds where linkers may delete code, sorted.
func (l *RecordList) deletions(o *elfreloc.Object, rs *elfreloc.RelocSection) (at []uint64, err error) {
	deletes := l.machine.Traits().Deletes
	if deletes == nil {
		return nil, nil
	}
	err = o.EachRelocation(*rs, func(_ int, r elfreloc.Relocation) error {
		if slices.Contains(deletes, r.Type) {
			at = append(at, r.Offset)
		}
		return nil
	})
	slices.Sort(at)
	return at, err
}

// findBases finds the global symbols of sections, and the groups they are in.
// Those of functions in another instruction set than the usual one are none: what is named
// by its distance from such a one gets the bits that choose it, too.
func findBases(o *elfreloc.Object, syms *elfreloc.Symbols, sections map[int]*recordSection, mode uint64) error {
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		sym := syms.At(i)
		s := sections[sym.Section]
		if s == nil {
			continue
		}
		if sym.Type == elf.STT_FUNC && sym.Value&mode != 0 {
			s.moded = strings.Clone(sym.Name)
			continue
		}
		switch sym.Type {
		case elf.STT_NOTYPE, elf.STT_FUNC, elf.STT_OBJECT:
			if sym.Name != "" && sym.Value <= o.Sections[sym.Section].Size {
				s.bases = append(s.bases, baseSymbol{strings.Clone(sym.Name), sym.Value, sym.Bind == elf.STB_WEAK})
			}
		}
	}
	groups, err := o.Groups()
	if err != nil {
		return err
	}
	for in, s := range sections {
		slices.SortFunc(s.bases, compareBases)
		if group, ok := groups[in]; ok {
			s.signature = groupSignature(o, group, syms)
		}
	}
	return nil
}

// compareBases puts the better one of equals last: the strong one, and then the
// one whose name comes first.
func compareBases(a, b baseSymbol) int {
	rank := func(b baseSymbol) int {
		if b.weak {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(rank(a), rank(b)), cmp.Compare(b.name, a.name))
}
