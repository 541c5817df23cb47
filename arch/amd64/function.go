package amd64

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// function is the code of one, decoded.
type function struct {
	flow     *flow
	from, to uint64 // offsets in the section
	insts    []instruction
}

// instruction is one of a function.
type instruction struct {
	x86asm.Inst
	at      uint64 // its offset in the section
	n       int    // its length in bytes
	jump    int    // the index of the instruction that it jumps to, or -1
	leaves  bool   // it jumps out of the function, or to an unknown place
	padding bool   // it does nothing
}

// whyUnknown is why nothing is known of the registers at a call.
const whyUnknown = "behind an instruction that is not known"

// decode decodes a function. why tells what keeps it from being followed.
func (f *flow) decode(from, to uint64) (fn *function, why string) {
	fn = &function{flow: f, from: from, to: to}
	if to-from > maxFunction {
		return fn, "in a function of more than 256 KiB"
	}
	for at := from; at < to; {
		inst, n := decode(f.text.Code[at:to])
		if n == 0 {
			return fn, "in a function with an instruction that is not known"
		}
		padding := inst.Op == x86asm.NOP && !bytes.HasPrefix(f.text.Code[at:], endbr64) || inst.Op == x86asm.INT && n == 1
		fn.insts = append(fn.insts, instruction{Inst: inst, at: at, n: n, jump: -1, padding: padding})
		at += uint64(n)
	}
	for i := range fn.insts {
		in := &fn.insts[i]
		rel, ok := in.Args[0].(x86asm.Rel)
		if !ok || in.Op == x86asm.CALL {
			continue
		}
		in.jump = fn.index(in.at + uint64(in.n) + uint64(int64(rel)))
		if in.leaves = in.jump < 0 || f.fields.any(in.at, in.at+uint64(in.n)); in.leaves {
			in.jump = -1
		}
	}
	return fn, ""
}

// index returns that of the instruction at an offset, -1 where none begins.
func (fn *function) index(at uint64) int {
	i, ok := slices.BinarySearchFunc(fn.insts, at, func(in instruction, at uint64) int { return cmp.Compare(in.at, at) })
	if !ok {
		return -1
	}
	return i
}

// analysis finds what the registers hold of one stub before each instruction of a
// function, by going along all ways until nothing changes.
type analysis struct {
	*function
	loads  map[uint64]*load // by offset
	before []state          // each instruction
	work   []int            // the instructions whose state has changed
	// unfollowed is the state of instructions that are reached in ways that cannot be followed: from the
	// outside, by indirect jumps and by unwinders. seeds are these instructions.
	unfollowed state
	seeds      []int
	// written are the registers that the function changes, once changed has found them.
	written uint16
}

// followLoads finds the calls that loads of one stub reach. why tells what keeps them from being
// disabled.
func (fn *function) followLoads(loads []load) (sites []arch.Site, why string) {
	a := &analysis{function: fn, loads: map[uint64]*load{}, before: make([]state, len(fn.insts)), unfollowed: state{isReachable: true}}
	for i := range loads {
		a.loads[loads[i].Offset] = &loads[i]
	}
	a.join(0, &state{isReachable: true}) // with the values of any caller
	for i := range fn.insts {
		in := &fn.insts[i]
		if fn.flow.entries.any(in.at+1, in.at+uint64(in.n)) {
			return nil, "which other code may jump to"
		}
		if i > 0 && (fn.flow.entries.has(in.at) || fn.flow.guesses.has(in.at)) {
			a.seed(i)
		}
	}
	for _, l := range loads {
		if fn.index(l.Offset) < 0 {
			return nil, whyUnknown // it is within what is decoded as another instruction
		}
	}
	for next := 0; ; next++ {
		a.untilStable()
		for next < len(fn.insts) && (a.before[next].isReachable || fn.insts[next].padding) {
			next++
		}
		if next == len(fn.insts) {
			break
		}
		a.seed(next) // a landing pad, or what is behind a call that does not return
	}
	return a.sites()
}

func (a *analysis) seed(i int) {
	a.seeds = append(a.seeds, i)
	a.join(i, &a.unfollowed)
}

func (a *analysis) join(i int, s *state) {
	if a.before[i].join(s) {
		a.work = append(a.work, i)
	}
}

// untilStable executes instructions until no state changes.
func (a *analysis) untilStable() {
	for len(a.work) > 0 {
		i := a.work[len(a.work)-1]
		a.work = a.work[:len(a.work)-1]
		in, s := &a.insts[i], a.before[i]
		s.pass(in, a.loads[in.at])
		if in.jump >= 0 {
			a.join(in.jump, &s)
		}
		if escapes := a.escapes(in, &s); escapes&^a.unfollowed.may != 0 {
			a.unfollowed.may |= escapes
			for _, seed := range a.seeds {
				a.join(seed, &a.unfollowed)
			}
		}
		if !ends(in.Op) && i+1 < len(a.insts) {
			a.join(i+1, &s)
		}
	}
}

// escapes returns the registers that may hold something of the stub where an instruction
// may lead to places that are not known: the targets of an indirect jump, and landing
// pads.
func (a *analysis) escapes(in *instruction, s *state) uint16 {
	switch {
	case in.Op == x86asm.JMP && in.jump < 0 && !in.leaves && !s.calls(in):
		return s.may
	case in.Op == x86asm.CALL && a.flow.code.LandingPads:
		return s.may & calleeSaved
	}
	return 0
}

// sites returns the calls of the stub, sorted.
func (a *analysis) sites() (sites []arch.Site, why string) {
	// Code that other code jumps to may be a landing pad, too, and this is not seen.
	if a.flow.code.LandingPads && a.unfollowed.may&calleeSaved&a.changed() != 0 {
		return nil, whyPads
	}
	for i := range a.insts {
		in, s := &a.insts[i], &a.before[i]
		if !s.isReachable {
			continue // padding
		}
		if a.loads[in.at] != nil {
			continue
		}
		last := i+1 == len(a.insts) && !ends(in.Op) && in.Op != x86asm.CALL
		switch {
		case s.calls(in):
			site, why := a.site(in, s)
			if why != "" {
				return nil, why
			}
			sites = append(sites, site)
		case last && s.may != 0:
			return nil, "in a function that goes on in another"
		default:
			if why := s.check(in); why != "" {
				return nil, why
			}
			if why := a.checkPads(in, s); why != "" {
				return nil, why
			}
		}
	}
	if len(sites) == 0 {
		return nil, "which no call is seen to use"
	}
	return sites, ""
}

// site returns that of an instruction which calls the stub.
func (a *analysis) site(in *instruction, s *state) (site arch.Site, why string) {
	site = arch.Site{Offset: in.at, Register: true, Code: a.flow.text.At(in.at, in.n)}
	if in.Op == x86asm.JMP {
		site.Form = arch.Tail
		if s.may&calleeSaved != 0 {
			return site, "whose register lives on"
		}
	}
	if !hasPlainOpcode(site.Code) {
		return site, "with a prefix"
	}
	// A landing pad has the callee-saved registers of the call that it is for. Where nothing
	// else is ever in this one, it is the stub's address there too, or the caller's value,
	// which this function does not know how to call.
	if a.flow.code.LandingPads && registersOf(in.Args[0])&calleeSaved&a.changed() != 0 {
		return site, whyPads
	}
	return site, ""
}

// whyPads is why a callee-saved register is not followed where exceptions may lead.
const whyPads = "through a register with other uses, in code with landing pads"

// checkPads looks on landing pads for calls of what may be the stub there, and for copies
// of what may be something else there.
func (a *analysis) checkPads(in *instruction, s *state) string {
	switch {
	case !a.flow.code.LandingPads:
	case (in.Op == x86asm.CALL || in.Op == x86asm.JMP) && registersOf(in.Args[0])&calleeSaved&a.unfollowed.may != 0:
		return "which code after an exception may call"
	case (in.copies() || s.makesAddress(in)) && registersOf(in.Args[1])&calleeSaved&s.may&a.changed() != 0:
		return whyPads
	}
	return ""
}

// changed returns the registers that the function changes, but for loads of the stub and
// pops.
func (a *analysis) changed() uint16 {
	if a.written == 0 {
		for i := range a.insts {
			in := &a.insts[i]
			if a.loads[in.at] == nil && in.Op != x86asm.POP {
				a.written |= in.changes()
			}
		}
		a.written |= 1 << 4 // rsp, so that this is not done again
	}
	return a.written
}

// bitmap is a set of the offsets of a section.
type bitmap struct {
	words []uint64
	size  uint64 // of the section; what is not below is never in the set
}

func newBitmap(size uint64) bitmap { return bitmap{make([]uint64, (size+63)/64), size} }

func (b bitmap) add(off uint64) {
	if off < b.size {
		b.words[off/64] |= 1 << (off % 64)
	}
}

// addAll adds the offsets from one up to another.
func (b bitmap) addAll(from, to uint64) {
	for ; from < min(to, b.size); from++ {
		b.add(from)
	}
}

func (b bitmap) has(off uint64) bool { return off < b.size && b.words[off/64]>>(off%64)&1 != 0 }

// any reports whether there is an offset from one up to another.
func (b bitmap) any(from, to uint64) bool {
	for to = min(to, b.size); from < to; {
		word := b.words[from/64] >> (from % 64)
		if word != 0 {
			return from+uint64(bits.TrailingZeros64(word)) < to
		}
		from += 64 - from%64
	}
	return false
}
