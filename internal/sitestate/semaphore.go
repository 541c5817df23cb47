package sitestate

import (
	"sdtconvert/arch"
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
		return r.relocs.target(site)
	}
	if _, branches := m.Branch(text, site.Offset); !branches {
		return image.Ref{}, false, nil
	}
	helper, ok, err := r.relocs.target(site)
	if err != nil || !ok || helper.Undefined || !r.memory.Executable(helper.Addr) {
		return image.Ref{}, false, err
	}
	if _, loads := m.LoadedSemaphore(branchOrLoad(r.memory, helper.Addr), helper.Offset); !loads {
		return image.Ref{}, false, nil
	}
	return r.relocs.target(helper.Addr)
}
