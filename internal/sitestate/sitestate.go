// Package sitestate tells what is at the site of a record: a disabled form, or
// what was there before it was converted, or what a tracer has put there.
package sitestate

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"sort"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// The states of a site.
const (
	Live     = "live"     // a call or a jump
	Disabled = "disabled" // a disabled form
	Armed    = "armed"    // a breakpoint; or in memory, a call where the file has a disabled form
	Unknown  = "unknown"  // something else, or what nothing tells from a disabled form
)

// Site is what is at the site of a record.
type Site struct {
	Kind  string // as arch.Describe names it
	State string
	// To is the place that the site goes to, as Image.Place shows it, where nothing tells
	// whether that is a stub; "" for others.
	To string
}

// Unexplained says why the state of a site is Unknown. code is what is there.
func (s *Site) Unexplained(code []byte) string {
	if s.To != "" {
		return fmt.Sprintf("holds % x, which goes to %s: neither a symbol nor code tells whether that is a stub", code, s.To)
	}
	return fmt.Sprintf("holds % x: no disabled form, no call and no breakpoint", code)
}

// Reader tells the states of the sites of an image or an object, and the semaphores of its
// is-enabled tests. It serves one goroutine at a time.
type Reader struct {
	memory image.Image // what records are read from
	file   image.Image // the same code as it was linked
	base   uint64      // how far above that the loader has put it
	names  patch.Names
	object *image.Object // the file, if it is relocatable
}

// New makes a Reader. memory is what records are read from: the image of the file, or a
// process. file holds the same code as it was linked, at base bytes below. names are those of stubs.
func New(file, memory image.Image, base uint64, names patch.Names) *Reader {
	object, _ := file.(*image.Object)
	return &Reader{memory: memory, file: file, base: base, names: names, object: object}
}

// disabledForm is what knows the disabled forms: arch.Machine.Disabled, or RecordedDOF.
type disabledForm func(arch.Text, uint64, arch.Kind) (arch.Site, bool)

// StateOf returns what is at the site of a record. The form of a site that is armed in memory is
// that of the file. An error is of the file's relocations or symbols.
func (r *Reader) StateOf(e *linkerset.Entry) (Site, error) {
	if e.Layout.Format == linkerset.Tracepoints {
		return ofTracepoint(e, r.memory), nil
	}
	return r.lookup(e, r.file.Machine().Disabled)
}

// StateOfDOF is StateOf for a site in DTrace's object format.
func (r *Reader) StateOfDOF(e *linkerset.Entry) (Site, error) {
	if m, ok := r.file.Machine().(arch.DOFMachine); ok {
		return r.lookup(e, m.RecordedDOF)
	}
	return r.StateOf(e)
}

// ofTracepoint is StateOf for a site that FreeBSD's kernel has marked itself: nops of the
// shortest form, or a jump that it has written over them.
func ofTracepoint(e *linkerset.Entry, memory image.Image) Site {
	m, text, at := memory.Machine(), CodeAround(memory, e.Site), e.Site.Offset
	_, disabled := m.Disabled(text, at, arch.Probe)
	_, jumps := m.Branch(text, at)
	switch {
	case jumps:
		return Site{Kind: tracepoint, State: Armed}
	case disabled, codeAt(text, at, m.Traits().Nops) != nil:
		return Site{Kind: tracepoint, State: Disabled}
	case codeAt(text, at, m.Traits().Breakpoints) != nil:
		return Site{Kind: tracepoint, State: Armed}
	}
	return Site{Kind: tracepoint, State: Unknown}
}

// tracepoint is the kind of what FreeBSD's kernel has marked.
const tracepoint = "tracepoint"

// lookup is StateOf, with what knows the disabled forms.
func (r *Reader) lookup(e *linkerset.Entry, disabled disabledForm) (Site, error) {
	m, text, at := r.memory.Machine(), CodeAround(r.memory, e.Site), e.Site.Offset
	s := Site{Kind: arch.Describe(e.Kind, arch.Call), State: Unknown}
	linked, hasForm := r.linked(e, disabled)
	if hasForm {
		if state := r.optimised(e, text); state != Unknown {
			return Site{Kind: arch.Describe(e.Kind, linked.Form), State: state}, nil
		}
	}
	if form, ok := disabled(text, at, e.Kind); ok {
		s.Kind = arch.Describe(e.Kind, form.Form)
		var err error
		if s.State, s.To, err = r.stateOf(r.memory, text, e, form); err != nil || s.State == Disabled {
			return s, err
		}
		if hasForm && !bytes.Equal(linked.Code, form.Code) {
			return Site{Kind: arch.Describe(e.Kind, linked.Form), State: Armed}, nil
		}
		return s, nil
	}
	if hasForm {
		s.Kind = arch.Describe(e.Kind, linked.Form)
	}
	switch live := m.Live(text, at); {
	case codeAt(text, at, m.Traits().Breakpoints) != nil, live && hasForm:
		s.State = Armed
	case live:
		s.State = Live
	}
	return s, nil
}

// optimised returns the state of a site that a kernel may arm behind its first byte; Unknown for
// others.
func (r *Reader) optimised(e *linkerset.Entry, text arch.Text) string {
	second, at := r.memory.Machine().Traits().Second, e.Site.Offset
	file := CodeAround(r.file, r.inFile(e.Site))
	switch {
	case codeAt(file, at-r.base, second.Nops) == nil:
		return Unknown
	case codeAt(text, at, second.Armed) != nil:
		return Armed
	case codeAt(text, at, second.Nops) != nil:
		return Disabled
	}
	return Unknown
}

// codeAt returns the first of some codes that is at a place of a text, nil if none is.
func codeAt(text arch.Text, at uint64, codes [][]byte) []byte {
	for _, want := range codes {
		if code := text.At(at, len(want)); bytes.Equal(code, want) {
			return code
		}
	}
	return nil
}

// inFile returns where the file has a site of memory.
func (r *Reader) inFile(site image.Addr) image.Addr {
	return image.Addr{Section: site.Section, Offset: site.Offset - r.base}
}

// linked returns the disabled form that the file has of a site in memory.
func (r *Reader) linked(e *linkerset.Entry, disabled disabledForm) (arch.Site, bool) {
	at := r.inFile(e.Site)
	return disabled(CodeAround(r.file, at), at.Offset, e.Kind)
}

// StateOfNote is StateOf for the site of a probe call that only a note describes. Headers of user
// space put a NOP there, which need not be a disabled form.
func (r *Reader) StateOfNote(at image.Addr) (Site, error) {
	m := r.file.Machine()
	return r.lookup(&linkerset.Entry{Kind: arch.Probe, Site: at}, func(t arch.Text, at uint64, kind arch.Kind) (arch.Site, bool) {
		if code := codeAt(t, at, m.Traits().Nops); code != nil {
			return arch.Site{Offset: at, Form: arch.Call, Code: code}, true
		}
		return m.Disabled(t, at, kind)
	})
}

// shownBytes is how many bytes messages show of a site.
const shownBytes = 4

// CodeAt reads what messages show of a site: less where the code ends.
func CodeAt(im image.Image, site image.Addr) []byte {
	for n := uint64(shownBytes); n > 0; n-- {
		if code, err := im.Bytes(site, n); err == nil {
			return code
		}
	}
	return nil
}

// CodeAround reads the code at a site: the instruction that is recorded, with
// what belongs to it before and behind it, or less where the code ends.
func CodeAround(im image.Image, site image.Addr) arch.Text {
	sizes := &im.Machine().Traits().Sizes
	most := max(sizes.Site, shownBytes)
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

// ConvertAdvice says what to do about an image with tracepoints that were not converted.
func ConvertAdvice() string { return "link with " + message.LinkersFlag() + ", or convert the objects" }

// Unconverted returns the ids of the probes of which an image has tracepoints that no conversion
// has met, sorted (patch.UnconvertedSection). The linker may have dropped their code.
func Unconverted(o *elfreloc.Object) ([]string, error) {
	var ids []string
	left := uint64(o.Size()) // in a hostile file many sections may have the same bytes
	for i := range o.Sections {
		sec := &o.Sections[i]
		if sec.Name != patch.UnconvertedSection || !sec.InFile() || sec.Size > left {
			continue
		}
		left -= sec.Size
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		for text := range bytes.SplitSeq(data, []byte{0}) {
			if id, ok := strings.CutPrefix(string(text), "_"); ok && id != "" {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

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
