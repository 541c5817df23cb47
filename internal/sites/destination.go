package sites

// Some disabled forms go elsewhere: to the return thunk, or to a helper. Their bytes are
// those of a call or a jump to a stub, so where they go tells what they are: by the names
// there, or by the code. What neither tells is not guessed.

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/patch"
)

// mostBranches are those from a site to its helper: one, and one that linkers put between.
const mostBranches = 2

// stateOf tells a call or a jump that is live from a disabled form that calls or jumps too.
// to is the place that the site goes to where the state is Unknown.
func (s *Space) stateOf(im image.Image, text arch.Text, site *Site, form arch.Site) (state, to string, err error) {
	m := im.Machine()
	isForm := func(nop []byte) bool { return bytes.Equal(nop, form.Code) }
	// A NOP of Thumb and the two bytes behind it may be what is a branch in A32.
	if _, ok := m.Branch(text, site.Address.Offset); !ok || slices.ContainsFunc(m.Traits().Nops, isForm) {
		return Disabled, "", nil
	}
	first, ok, err := s.destination(im, text, site.Address, uint64(len(form.Code)))
	for at, hop := first, 0; ok && err == nil && hop < mostBranches; hop++ {
		if state, err = s.meaning(im, site.Kind, at); err != nil || state != Unknown {
			return state, "", err
		}
		if at.Undefined || site.Kind == arch.Probe { // whose linkers put nothing between
			break
		}
		text := branchOrLoad(im, at.Addr)
		at, ok, err = s.destination(im, text, at.Addr, uint64(len(text.Code)))
	}
	return Unknown, displayName(im, first), err
}

func displayName(im image.Image, to image.Ref) string {
	if to.Symbol != "" {
		return to.Symbol
	}
	return im.Place(to.Addr)
}

// destination returns where a branch goes, whose code is of some bytes at most. ok is
// false where there is none.
func (s *Space) destination(im image.Image, text arch.Text, at image.Addr, size uint64) (ref image.Ref, ok bool, err error) {
	to, ok := im.Machine().Branch(text, at.Offset)
	if !ok {
		return image.Ref{}, false, nil
	}
	if at.Section != 0 {
		field, err := s.relocation(at, size)
		if err != nil {
			return image.Ref{}, false, err
		}
		if field != nil {
			ref, err := s.symbol(field)
			// Without what the relocation adds, the branch goes to some place by its field.
			ref.Offset = (ref.Offset + uint64(field.Addend) + to - field.Offset) &^ im.Machine().Traits().Mode
			return ref, err == nil, err
		}
	}
	return image.Ref{Addr: image.Addr{Section: at.Section, Offset: to}}, true, nil
}

// meaning returns what a site of a kind is that goes to some place: Unconverted where that is a
// stub, Disabled where it is what conversions make such sites go to.
func (s *Space) meaning(im image.Image, kind arch.Kind, to image.Ref) (string, error) {
	m := im.Machine()
	names := []string{to.Symbol}
	if !to.Undefined {
		for _, bits := range []uint64{0, m.Traits().Mode} {
			symbols, err := im.SymbolsAt(image.Addr{Section: to.Section, Offset: to.Offset | bits})
			if err != nil {
				return "", err
			}
			names = append(names, symbols...)
		}
	}
	isOurs := func(name string) bool { return name != "" && name == m.Traits().ReturnThunk.Symbol }
	if kind == arch.Enabled {
		isOurs = patch.IsHelper
	}
	switch {
	case slices.ContainsFunc(names, s.isStub):
		return Unconverted, nil
	case slices.ContainsFunc(names, isOurs):
		return Disabled, nil
	case !to.Undefined && kind == arch.Probe && isThunk(im, to.Addr),
		!to.Undefined && kind == arch.Enabled && isHelper(im, to.Addr):
		return Disabled, nil
	}
	return Unknown, nil
}

// isStub reports whether a name is a stub's, or that which mold gives to the entry of one in
// the procedure linkage table.
func (s *Space) isStub(name string) bool {
	return s.Names.IsStub(strings.TrimSuffix(strings.TrimSuffix(name, "$plt"), "$thunk"))
}

// isThunk reports whether the return thunk is at an address, as gcc makes it.
func isThunk(im image.Image, at image.Addr) bool {
	want := im.Machine().Traits().ReturnThunk.Code
	if len(want) == 0 {
		return false
	}
	code, err := im.Bytes(at, uint64(len(want)))
	return err == nil && bytes.Equal(code, want)
}

// isHelper reports whether a helper is at an address: code that sets the result to 0, or to
// a semaphore, and returns, with the mark of conversions behind it.
func isHelper(im image.Image, at image.Addr) bool {
	m := im.Machine()
	mark := m.Traits().HelperMark.Code
	for _, s := range helpers() {
		code := m.Stub(s)
		length := 0
		for _, insn := range code {
			length += len(insn.Code)
		}
		b, err := im.Bytes(at, uint64(length+len(mark)))
		if err != nil || !bytes.Equal(b[length:], mark) {
			continue
		}
		_, loads := m.LoadedSemaphore(arch.Text{Code: b, Start: at.Offset}, at.Offset)
		if loads || s.Semaphore == "" && setsResult(code, b) {
			return true
		}
	}
	return false
}

// helpers are those that conversions make.
var helpers = sync.OnceValue(func() (stubs []arch.Stub) {
	for _, semaphore := range []string{"", "semaphore"} {
		for _, thunk := range []string{"", "thunk"} {
			for _, pad := range []bool{false, true} {
				stubs = append(stubs, arch.Stub{Kind: arch.Enabled, LandingPad: pad, Thunk: thunk, Semaphore: semaphore, Self: semaphore})
			}
		}
	}
	return stubs
})

// setsResult reports whether code is that of a helper, but for what a linker has filled in.
func setsResult(helper []arch.Insn, code []byte) bool {
	for _, insn := range helper {
		if insn.Reloc == nil && !bytes.HasPrefix(code, insn.Code) {
			return false
		}
		code = code[len(insn.Code):]
	}
	return true
}
