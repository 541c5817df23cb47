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
	if e.Layout.Format == linkerset.Tracepoints {
		return ofTracepoint(e, memory)
	}
	return of(e, memory, file, base, memory.Machine().Disabled)
}

// OfDOF is Of for a site that DTrace's object format tells of.
func OfDOF(e *linkerset.Entry, memory, file image.Image, base uint64) (kind, state string) {
	m, ok := memory.Machine().(arch.DOFMachine)
	if !ok {
		return Of(e, memory, file, base)
	}
	return of(e, memory, file, base, m.RecordedDOF)
}

// ofTracepoint is Of for a site that FreeBSD's kernel has marked itself: nops of the
// shortest form, or a jump that it has written over them.
func ofTracepoint(e *linkerset.Entry, memory image.Image) (kind, state string) {
	m, text, at := memory.Machine(), CodeAround(memory, e.Site), e.Site.Offset
	isThere := func(b []byte) bool { return bytes.Equal(text.At(at, len(b)), b) }
	_, disabled := m.Disabled(text, at, arch.Probe)
	_, jumps := m.Branch(text, at)
	switch {
	case jumps:
		return tracepoint, Armed
	case disabled, slices.ContainsFunc(m.Traits().Nops, isThere):
		return tracepoint, Disabled
	case slices.ContainsFunc(m.Traits().Breakpoints, isThere):
		return tracepoint, Armed
	}
	return tracepoint, Unknown
}

// tracepoint is the kind of what FreeBSD's kernel has marked.
const tracepoint = "tracepoint"

// of is Of, with what knows the disabled forms.
func of(e *linkerset.Entry, memory, file image.Image, base uint64, disabledForm func(arch.Text, uint64, arch.Kind) (arch.Site, bool)) (kind, state string) {
	m, text, at := memory.Machine(), CodeAround(memory, e.Site), e.Site.Offset
	if site, ok := disabledForm(text, at, e.Kind); ok {
		if isLive(memory, text, e, site) {
			return arch.Describe(e.Kind, site.Form), Live
		}
		return arch.Describe(e.Kind, site.Form), Disabled
	}
	kind = arch.Describe(e.Kind, arch.Call)
	inFile := image.Addr{Section: e.Site.Section, Offset: at - base}
	linked, disabled := disabledForm(CodeAround(file, inFile), inFile.Offset, e.Kind)
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

// IsDisabled reports whether a file has a disabled form of a probe call at an address.
func IsDisabled(file image.Image, at image.Addr) bool {
	_, ok := file.Machine().Disabled(CodeAround(file, at), at.Offset, arch.Probe)
	return ok
}

// OfNote tells the state of the site of a probe call, in a file, that a note alone tells of.
// Headers of user space put a no operation there, which need be no disabled form: it is
// Disabled all the same.
func OfNote(file image.Image, at image.Addr) string {
	text := CodeAround(file, at)
	isThere := func(nop []byte) bool { return bytes.Equal(text.At(at.Offset, len(nop)), nop) }
	if slices.ContainsFunc(file.Machine().Traits().Nops, isThere) {
		return Disabled
	}
	_, state := Of(&linkerset.Entry{Kind: arch.Probe, Site: at}, file, file, 0)
	return state
}

// isLive tells a call or a jump that is live from a disabled form that calls or jumps as
// well: to a return thunk or a helper. It does so by the names of where it goes, and a
// helper that is called, or jumped to on a condition, by what it does.
func isLive(im image.Image, text arch.Text, e *linkerset.Entry, site arch.Site) bool {
	m := im.Machine()
	to, ok := m.Branch(text, e.Site.Offset)
	if !ok || e.Site.Section != 0 {
		return false
	}
	names, err := im.SymbolsAt(image.Addr{Offset: to})
	if err == nil && slices.ContainsFunc(names, patch.DefaultNames().IsStub) {
		return true
	}
	if e.Kind != arch.Enabled || site.Form == arch.Tail {
		return false
	}
	takes := takesHelper(m, site)
	for range hops {
		helper := jumpOrLoad(im, image.Addr{Offset: to})
		if _, loads := m.Load(helper, to); loads || takes && setsResult(m, helper) {
			return false
		}
		if to, ok = m.Branch(helper, to); !ok {
			break
		}
	}
	return true
}

// takesHelper reports whether the disabled form of an is-enabled site goes to the helper.
func takesHelper(m arch.Machine, site arch.Site) bool {
	c, err := m.Disable(site, arch.Enabled, arch.Env{})
	return err == nil && c.Target == arch.TargetHelper
}

// setsResult reports whether code begins as the helper does that sets the result.
func setsResult(m arch.Machine, code arch.Text) bool {
	first := m.Stub(arch.Stub{Kind: arch.Enabled})[0].Code
	return bytes.HasPrefix(code.Code, first)
}

// shown is how many bytes messages show of a site.
const shown = 4

// CodeAround reads the code at a site: the instruction that is recorded, with
// what belongs to it before and behind it, or less where the code ends.
func CodeAround(im image.Image, site image.Addr) arch.Text {
	sizes := &im.Machine().Traits().Sizes
	most := max(sizes.Site, shown)
	for before := min(sizes.Skip, site.Offset); ; before-- { // less where code begins
		if text := codeFrom(im, site, before, most); text.Code != nil || before == 0 {
			return text
		}
	}
}

// codeFrom reads so many bytes before an address, and up to so many from there on.
func codeFrom(im image.Image, at image.Addr, before, after uint64) arch.Text {
	start := image.Addr{Section: at.Section, Offset: at.Offset - before}
	for ; after > 0; after-- {
		if code, err := im.Bytes(start, before+after); err == nil {
			return arch.Text{Code: code, Start: start.Offset}
		}
	}
	return arch.Text{Start: start.Offset}
}
