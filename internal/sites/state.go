package sites

// What is at a site: a disabled form, or what was there before it was converted, or what a
// tracer has put there.

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
	Unconverted = "unconverted" // a call or a jump of a stub, or a marked NOP
	Disabled    = "disabled"    // a disabled form
	Armed       = "armed"       // a breakpoint; or in memory, a call where the file has a disabled form
	Refused     = "refused"     // a reference to a stub that cannot be converted
	Unknown     = "unknown"     // something else, or what nothing tells from a disabled form
)

// Code is what is at a site.
type Code struct {
	Kind  string // as arch.ListedKind names it
	State string
	// Form is the disabled form, of the file if the site is armed in memory. Without any, its Code is empty.
	Form arch.Site
	// To is the place that the site goes to, as Image.Place shows it, where nothing tells
	// whether that is a stub; "" for others.
	To string
}

// Unexplained says why the state of a site is Unknown. code is what is there.
func (c *Code) Unexplained(code []byte) string {
	if c.To != "" {
		return fmt.Sprintf("holds % x, which goes to %s: neither a symbol nor code tells whether that is a stub", code, c.To)
	}
	return fmt.Sprintf("holds % x: no disabled form, no call and no breakpoint", code)
}

// disabledForm is what knows the disabled forms: arch.Machine.Disabled, or RecordedDOF.
type disabledForm func(arch.Text, uint64, arch.Kind) (arch.Site, bool)

// Code returns what is at a site. The form of a site that is armed in memory is that of the file. An
// error is of the file's relocations or symbols.
func (s *Space) Code(site *Site) (Code, error) {
	m := s.File.Machine()
	switch {
	case site.Source == FromNote:
		return s.lookup(site, s.disabledByHeader)
	case site.Source == FromDOF:
		if m, ok := m.(arch.DOFMachine); ok {
			return s.lookup(site, m.RecordedDOF)
		}
	case site.Source == FromEdit:
		return Code{Kind: arch.ListedKind(site.Kind, site.Edit.Site.Form), State: Disabled, Form: site.Edit.Site}, nil
	case site.Layout.Format == linkerset.Tracepoints:
		return s.tracepoint(site), nil
	}
	return s.lookup(site, m.Disabled)
}

// disabledByHeader is a disabledForm of probe calls that only a note describes. Headers of user
// space put a NOP there, which need not be a disabled form.
func (s *Space) disabledByHeader(t arch.Text, at uint64, kind arch.Kind) (arch.Site, bool) {
	m := s.File.Machine()
	if code := codeAt(t, at, m.Traits().Nops); code != nil {
		return arch.Site{Offset: at, Form: arch.Call, Code: code}, true
	}
	return m.Disabled(t, at, kind)
}

// tracepoint is Code for a site that FreeBSD's kernel has marked itself: nops of the
// shortest form, or a jump that it has written over them.
func (s *Space) tracepoint(site *Site) Code {
	const kind = "tracepoint"
	m, text, at := s.Memory.Machine(), CodeAround(s.Memory, site.Address), site.Address.Offset
	_, disabled := m.Disabled(text, at, arch.Probe)
	_, jumps := m.Branch(text, at)
	switch {
	case jumps:
		return Code{Kind: kind, State: Armed}
	case disabled, codeAt(text, at, m.Traits().Nops) != nil:
		return Code{Kind: kind, State: Disabled}
	case codeAt(text, at, m.Traits().Breakpoints) != nil:
		return Code{Kind: kind, State: Armed}
	}
	return Code{Kind: kind, State: Unknown}
}

// lookup is Code, with what recognises the disabled forms. If neither memory nor the file has one, Form is empty.
func (s *Space) lookup(site *Site, disabled disabledForm) (Code, error) {
	m, text, at := s.Memory.Machine(), CodeAround(s.Memory, site.Address), site.Address.Offset
	linked, hasForm := s.linked(site, disabled)
	if !hasForm {
		linked = arch.Site{}
	}
	code := Code{Kind: arch.ListedKind(site.Kind, linked.Form), State: Armed, Form: linked}
	if hasForm {
		if state := s.optimised(site, text); state != Unknown {
			code.State = state
			return code, nil
		}
	}
	if form, ok := disabled(text, at, site.Kind); ok {
		state, to, err := s.stateOf(s.Memory, text, site, form)
		if err == nil && state != Disabled && hasForm && !bytes.Equal(linked.Code, form.Code) {
			return code, nil // armed
		}
		return Code{Kind: arch.ListedKind(site.Kind, form.Form), State: state, To: to, Form: form}, err
	}
	switch live := m.Live(text, at); {
	case codeAt(text, at, m.Traits().Breakpoints) != nil, live && hasForm: // armed
	case live:
		code.State = Unconverted
	default:
		code.State = Unknown
	}
	return code, nil
}

// optimised returns the state of a site that a kernel may arm behind its first byte; Unknown for
// others.
func (s *Space) optimised(site *Site, text arch.Text) string {
	second, at := s.Memory.Machine().Traits().Second, site.Address.Offset
	file := CodeAround(s.File, s.inFile(site.Address))
	switch {
	case codeAt(file, at-s.Base, second.Nops) == nil:
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
func (s *Space) inFile(site image.Addr) image.Addr {
	return image.Addr{Section: site.Section, Offset: site.Offset - s.Base}
}

// linked returns the disabled form that the file has of a site in memory.
func (s *Space) linked(site *Site, disabled disabledForm) (arch.Site, bool) {
	at := s.inFile(site.Address)
	return disabled(CodeAround(s.File, at), at.Offset, site.Kind)
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

// UnconvertedProbes returns the ids of the probes of which an image has tracepoints that no conversion
// has met, sorted (patch.UnconvertedSection). The linker may have dropped their code.
func UnconvertedProbes(o *elfreloc.Object) ([]string, error) {
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

// Semaphore returns the semaphore of a site, as memory has it: the one that a call's note names, or that an
// is-enabled test loads. ok is false if there is none.
func (s *Space) Semaphore(site *Site) (semaphore image.Ref, ok bool, err error) {
	switch {
	case site.Kind == arch.Enabled:
		return s.loadedSemaphore(site)
	case site.Note != nil:
		semaphore = site.Note.Semaphore
	case site.Row != nil:
		semaphore = site.Row.Semaphore
	}
	if semaphore.Null() {
		return image.Ref{}, false, nil
	}
	semaphore.Addr = semaphore.Addr.Add(s.Base)
	return semaphore, true, nil
}

// loadedSemaphore follows an is-enabled site to the semaphore that it loads, or that the
// helper loads to which it goes.
func (s *Space) loadedSemaphore(site *Site) (semaphore image.Ref, ok bool, err error) {
	if site.Address.Section != 0 {
		return s.relocatedSemaphore(site.Address)
	}
	m, at := s.Memory.Machine(), site.Address.Offset
	text := branchOrLoad(s.Memory, site.Address)
	addr, ok := m.LoadedSemaphore(text, at)
	for range hops {
		to, branches := m.Branch(text, at)
		if ok || !branches {
			break
		}
		text, at = branchOrLoad(s.Memory, image.Addr{Offset: to}), to
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
func (s *Space) relocatedSemaphore(site image.Addr) (semaphore image.Ref, ok bool, err error) {
	m := s.Memory.Machine()
	text := branchOrLoad(s.Memory, site)
	if _, loads := m.LoadedSemaphore(text, site.Offset); loads {
		return s.target(site)
	}
	if _, branches := m.Branch(text, site.Offset); !branches {
		return image.Ref{}, false, nil
	}
	helper, ok, err := s.target(site)
	if err != nil || !ok || helper.Undefined || !s.Memory.Executable(helper.Addr) {
		return image.Ref{}, false, err
	}
	if _, loads := m.LoadedSemaphore(branchOrLoad(s.Memory, helper.Addr), helper.Offset); !loads {
		return image.Ref{}, false, nil
	}
	return s.target(helper.Addr)
}

// relocation returns the first relocation of so many bytes of code in an object, nil if there is none.
func (s *Space) relocation(at image.Addr, size uint64) (*elfreloc.Relocation, error) {
	fields, err := image.Relocations(s.File, at.Section)
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
func (s *Space) symbol(rel *elfreloc.Relocation) (image.Ref, error) {
	syms, err := s.Object.Symbols()
	if err != nil || rel.Sym == 0 {
		return image.Ref{Undefined: true}, err
	}
	sym := syms.At(int(rel.Sym))
	ref := image.Ref{Addr: image.Addr{Section: max(sym.Section, 0), Offset: sym.Value}, Symbol: sym.Name, Undefined: sym.Section <= 0}
	if sym.Type == elf.STT_SECTION {
		ref.Symbol = ""
	}
	return ref, nil
}

// target returns the symbol that the first relocation of some code names: an
// instruction's, where it begins, or that of one behind a landing pad. Conversions name
// what they refer to.
func (s *Space) target(at image.Addr) (image.Ref, bool, error) {
	sizes := &s.Memory.Machine().Traits().Sizes
	rel, err := s.relocation(at, max(sizes.Load, sizes.Site))
	if rel == nil || err != nil {
		return image.Ref{}, false, err
	}
	ref, err := s.symbol(rel)
	return ref, err == nil && ref.Symbol != "", err
}
