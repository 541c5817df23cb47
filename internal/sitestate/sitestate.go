// Package sitestate tells what is at the site of a record: a disabled form, or
// what was there before it was converted, or what a tracer has put there.
package sitestate

import (
	"bytes"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// The states of a site.
const (
	Live     = "live"     // a call or a jump
	Disabled = "disabled" // a disabled form
	Armed    = "armed"    // a breakpoint; or in memory, a call where the file has a disabled form
	Unknown  = "unknown"  // something else
)

// Of tells the kind of a site, as arch.Describe names it, and its state. memory
// is what the record was read from. file holds the same code as it was linked, at
// base bytes below: the form of a site that is armed in memory is that of the
// file.
func Of(e *linkerset.Entry, memory, file image.Image, base uint64) (kind, state string) {
	m, text, at := memory.Machine(), CodeAround(memory, e.Site), e.Site.Offset
	if site, ok := m.Disabled(text, at, e.Kind); ok {
		if jumpsToStub(memory, text, e.Site) {
			return arch.Describe(e.Kind, site.Form), Live
		}
		return arch.Describe(e.Kind, site.Form), Disabled
	}
	kind = arch.Describe(e.Kind, arch.Call)
	inFile := image.Addr{Section: e.Site.Section, Offset: at - base}
	linked, disabled := m.Disabled(CodeAround(file, inFile), inFile.Offset, e.Kind)
	if disabled {
		kind = arch.Describe(e.Kind, linked.Form)
	}
	isBreakpoint := func(b []byte) bool { return bytes.Equal(text.At(at, len(b)), b) }
	switch live := m.Live(text, at); {
	case slices.ContainsFunc(m.Traits().Breakpoints, isBreakpoint), live && disabled:
		return kind, Armed
	case live:
		return kind, Live
	}
	return kind, Unknown
}

// jumpsToStub tells a tail call that is live from a disabled one that jumps as
// well, to a return thunk or a helper, by the names of where it goes.
func jumpsToStub(im image.Image, text arch.Text, site image.Addr) bool {
	to, ok := im.Machine().Jump(text, site.Offset)
	if !ok || site.Section != 0 {
		return false
	}
	names, err := im.SymbolsAt(image.Addr{Offset: to})
	return err == nil && slices.ContainsFunc(names, patch.DefaultNames().IsStub)
}

// shown is how many bytes messages show of a site.
const shown = 4

// CodeAround reads the code at a site: the instruction that is recorded, with
// what belongs to it before and behind it, or less where the code ends.
func CodeAround(im image.Image, site image.Addr) arch.Text {
	sizes := &im.Machine().Traits().Sizes
	most := max(sizes.Site, shown)
	for _, before := range []uint64{min(sizes.Skip, site.Offset), 0} {
		start := image.Addr{Section: site.Section, Offset: site.Offset - before}
		for after := most; after > 0; after-- {
			if code, err := im.Bytes(start, before+after); err == nil {
				return arch.Text{Code: code, Start: start.Offset}
			}
		}
	}
	return arch.Text{Start: site.Offset}
}
