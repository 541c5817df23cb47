package sitestate

import (
	"debug/elf"
	"sort"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
)

// Semaphore follows an is-enabled site to the semaphore that it loads, or that the
// helper loads to which it goes. ok is false where there is none.
func (r *Reader) Semaphore(e *linkerset.Entry) (semaphore image.Ref, ok bool, err error) {
	if e.Kind != arch.Enabled {
		return image.Ref{}, false, nil
	}
	if e.Site.Section != 0 {
		return r.relocatedSemaphore(e.Site)
	}
	m, at := r.memory.Machine(), e.Site.Offset
	text := branchOrLoad(r.memory, e.Site)
	addr, ok := m.LoadedSemaphore(text, at)
	for range hops {
		to, branches := m.Branch(text, at)
		if ok || !branches {
			break
		}
		text, at = branchOrLoad(r.memory, image.Addr{Offset: to}), to
		addr, ok = m.LoadedSemaphore(text, at)
	}
	return image.Ref{Addr: image.Addr{Offset: addr}}, ok, nil
}

// branchOrLoad reads what may be a load of a semaphore, or a branch to one.
func branchOrLoad(im image.Image, at image.Addr) arch.Text {
	sizes := &im.Machine().Traits().Sizes
	return codeFrom(im, at, 0, max(sizes.Load, sizes.Site, sizes.Branch))
}

// relocatedSemaphore follows a site of an object, where relocations tell what code refers to.
func (r *Reader) relocatedSemaphore(site image.Addr) (semaphore image.Ref, ok bool, err error) {
	m := r.memory.Machine()
	text := branchOrLoad(r.memory, site)
	if _, loads := m.LoadedSemaphore(text, site.Offset); loads {
		return r.target(site)
	}
	if _, branches := m.Branch(text, site.Offset); !branches {
		return image.Ref{}, false, nil
	}
	helper, ok, err := r.target(site)
	if err != nil || !ok || helper.Undefined || !r.memory.Executable(helper.Addr) {
		return image.Ref{}, false, err
	}
	if _, loads := m.LoadedSemaphore(branchOrLoad(r.memory, helper.Addr), helper.Offset); !loads {
		return image.Ref{}, false, nil
	}
	return r.target(helper.Addr)
}

// relocation returns the first relocation of so many bytes of code in an object, nil if there is none.
func (r *Reader) relocation(at image.Addr, size uint64) (*elfreloc.Relocation, error) {
	fields, err := r.object.Relocations(at.Section)
	if err != nil {
		return nil, err
	}
	i := sort.Search(len(fields), func(i int) bool { return fields[i].Offset >= at.Offset })
	if i == len(fields) || fields[i].Offset-at.Offset >= size {
		return nil, nil
	}
	return &fields[i], nil
}

// symbol returns the symbol that a relocation names; of a section, it has no name.
func (r *Reader) symbol(rel *elfreloc.Relocation) (image.Ref, error) {
	syms, err := r.object.Object().Symbols()
	if err != nil || rel.Sym == 0 {
		return image.Ref{Undefined: true}, err
	}
	s := syms.At(int(rel.Sym))
	ref := image.Ref{Addr: image.Addr{Section: max(s.Section, 0), Offset: s.Value}, Symbol: s.Name, Undefined: s.Section <= 0}
	if s.Type == elf.STT_SECTION {
		ref.Symbol = ""
	}
	return ref, nil
}

// target returns the symbol that the first relocation of some code names: an
// instruction's, where it begins, or that of one behind a landing pad. Conversions name
// what they refer to.
func (r *Reader) target(at image.Addr) (image.Ref, bool, error) {
	sizes := &r.memory.Machine().Traits().Sizes
	rel, err := r.relocation(at, max(sizes.Load, sizes.Site))
	if rel == nil || err != nil {
		return image.Ref{}, false, err
	}
	ref, err := r.symbol(rel)
	return ref, err == nil && ref.Symbol != "", err
}
