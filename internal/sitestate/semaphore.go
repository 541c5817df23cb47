package sitestate

import (
	"cmp"
	"debug/elf"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
)

// Tests finds the semaphores that is-enabled tests load, of an image or an object.
type Tests struct {
	im     image.Image
	object *elfreloc.Object
	tables map[int][]elfreloc.RelocSection // of an object, by section; nil until one is needed
	fields map[int][]elfreloc.Relocation   // of an object's sections of code, sorted by offset
}

// NewTests makes one for the image that records are read from. object is its file where
// that is relocatable; else it is not needed.
func NewTests(im image.Image, object *elfreloc.Object) *Tests {
	return &Tests{im: im, object: object, fields: map[int][]elfreloc.Relocation{}}
}

// Semaphore follows an is-enabled site to the semaphore that it loads, or that the
// helper loads to which it goes. ok is false where there is none.
func (t *Tests) Semaphore(e *linkerset.Entry) (semaphore image.Ref, ok bool, err error) {
	if e.Kind != arch.Enabled {
		return image.Ref{}, false, nil
	}
	if e.Site.Section != 0 {
		return t.relocated(e.Site)
	}
	m, at := t.im.Machine(), e.Site.Offset
	text := jumpOrLoad(t.im, e.Site)
	addr, ok := m.Load(text, at)
	for range hops {
		to, branches := m.Branch(text, at)
		if ok || !branches {
			break
		}
		text, at = jumpOrLoad(t.im, image.Addr{Offset: to}), to
		addr, ok = m.Load(text, at)
	}
	return image.Ref{Addr: image.Addr{Offset: addr}}, ok, nil
}

// hops are the branches from a site to its helper: one, and one that linkers put between.
const hops = 2

// jumpOrLoad reads what may be a load of a semaphore, or a branch to one.
func jumpOrLoad(im image.Image, at image.Addr) arch.Text {
	sizes := &im.Machine().Traits().Sizes
	return codeFrom(im, at, 0, max(sizes.Load, sizes.Site, sizes.Branch))
}

// relocated follows a site of an object, where relocations tell what code refers to.
func (t *Tests) relocated(site image.Addr) (semaphore image.Ref, ok bool, err error) {
	m := t.im.Machine()
	text := jumpOrLoad(t.im, site)
	if _, loads := m.Load(text, site.Offset); loads {
		return t.target(site)
	}
	if _, branches := m.Branch(text, site.Offset); !branches {
		return image.Ref{}, false, nil
	}
	helper, ok, err := t.target(site)
	if err != nil || !ok || helper.Undefined || !t.im.Executable(helper.Addr) {
		return image.Ref{}, false, err
	}
	if _, loads := m.Load(jumpOrLoad(t.im, helper.Addr), helper.Offset); !loads {
		return image.Ref{}, false, nil
	}
	return t.target(helper.Addr)
}

// target is the symbol that the first relocation of some code names: an instruction's,
// where it begins, or that of one behind a landing pad.
func (t *Tests) target(at image.Addr) (image.Ref, bool, error) {
	fields, err := t.relocations(at.Section)
	if err != nil {
		return image.Ref{}, false, err
	}
	sizes := &t.im.Machine().Traits().Sizes
	i, _ := slices.BinarySearchFunc(fields, at.Offset, func(r elfreloc.Relocation, off uint64) int { return cmp.Compare(r.Offset, off) })
	if i == len(fields) || fields[i].Offset-at.Offset >= max(sizes.Load, sizes.Site) {
		return image.Ref{}, false, nil
	}
	syms, err := t.object.Symbols()
	if err != nil {
		return image.Ref{}, false, err
	}
	s := syms.At(int(fields[i].Sym))
	if fields[i].Sym == 0 || s.Type == elf.STT_SECTION { // conversions name what they refer to
		return image.Ref{}, false, nil
	}
	ref := image.Ref{Addr: image.Addr{Section: max(s.Section, 0), Offset: s.Value}, Symbol: s.Name, Undefined: s.Section <= 0}
	return ref, true, nil
}

// relocations lists those of a section that do something, each section's once.
func (t *Tests) relocations(section int) ([]elfreloc.Relocation, error) {
	if fields, ok := t.fields[section]; ok {
		return fields, nil
	}
	if err := t.readTables(); err != nil {
		return nil, err
	}
	var fields []elfreloc.Relocation
	for _, rs := range t.tables[section] {
		if err := t.object.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			if r.Type != t.im.Machine().Traits().None {
				fields = append(fields, r)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(fields, func(a, b elfreloc.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
	t.fields[section] = fields
	return fields, nil
}

func (t *Tests) readTables() error {
	if t.tables != nil {
		return nil
	}
	all, err := t.object.RelocSections()
	if err != nil {
		return err
	}
	t.tables = map[int][]elfreloc.RelocSection{}
	for _, rs := range all {
		t.tables[rs.Target] = append(t.tables[rs.Target], rs)
	}
	return nil
}
