// Package arch says what sdtconvert must know of an instruction set.
//
// Everything that differs between machines is behind Machine, so that the
// packages above never ask which machine they work for. A machine is a directory
// beside this file and a line in package machines; docs/adding-a-machine.md
// says how one is made. A Machine sees bytes, offsets and relocations; it knows
// nothing of ELF files as a whole.
//
// machines.Lookup finds the Machine of an object; nothing else knows how many
// there are. Sizes and offsets are in bytes.
package arch

import (
	"fmt"
	"sort"
	"strings"

	"sdtconvert/elfreloc"
)

// Kind is what a stub means to the program that calls it.
type Kind uint8

const (
	Probe   Kind = iota // a probe call: no result is used
	Enabled             // an is-enabled test: returns int, 0 when disabled
)

// Kinds is the number of kinds.
const Kinds = Enabled + 1

// Form is the shape of the instruction that reaches a stub.
type Form uint8

const (
	Call     Form = iota // returns behind the site
	Tail                 // an unconditional jump
	CondTail             // a conditional jump; the probe is reached only if taken
	Nop                  // nothing: a disabled form of a call that R_*_NONE marks
)

// Forms is the number of forms.
const Forms = Nop + 1

// kinds is by Kind, and has the names of its sites: before a conversion by form, and in listings if nothing but its kind is known of it.
var kinds = [Kinds]struct {
	sites           [Forms]string
	listed, article string
}{
	Probe:   {[...]string{"call", "tail", "cond-tail", "nop"}, "probe", "a"},
	Enabled: {[...]string{"isenabled", "isenabled-tail", "isenabled-cond-tail", "isenabled-nop"}, "isenabled", "an"},
}

// Describe names a site's kind and form before its conversion.
func Describe(k Kind, f Form) string { return kinds[k].sites[f] }

// ListedKind names a site's kind in listings, which is the same before and after its conversion: no code tells a call from a marked NOP once
// they are converted.
func ListedKind(k Kind, f Form) string {
	if f == Call || f == Nop {
		return kinds[k].listed
	}
	return Describe(k, f)
}

// withArticle is Describe with an article.
func withArticle(k Kind, f Form) string { return kinds[k].article + " " + Describe(k, f) }

// Text is a text section or, of a linked image, a part of one around a site.
type Text struct {
	Code  []byte
	Start uint64 // offset in the section of Code[0]
	// Map is what mapping symbols say of the whole section, sorted by offset; nil
	// where there are none. The texts of linked images have none.
	Map []Mapping
	// Attributes are the object's build attributes (Traits.Attributes), nil where it has
	// none. The texts of linked images have none.
	Attributes []byte
}

// Mapping says what the bytes of a section are, from an offset up to the next one.
type Mapping struct {
	Offset   uint64
	Encoding Encoding
}

// Encoding is what bytes in a text section are by the letter of their mapping symbol
// (ELF for the Arm Architecture, 5.5.5; ELF for the Arm 64-bit Architecture, 5.5.4;
// RISC-V ELF psABI, "Mapping Symbol").
type Encoding byte

const (
	Unmapped Encoding = 0   // not marked: the machine's usual instructions
	Data     Encoding = 'd' // no instructions
	A32      Encoding = 'a' // Arm's of 32 bits
	Thumb    Encoding = 't' // Arm's of 16 and 32 bits
	Insns    Encoding = 'x' // the only instruction set of A64 and of RISC-V
)

// Encoding returns what stands at a section offset.
func (t Text) Encoding(off uint64) Encoding {
	i := sort.Search(len(t.Map), func(i int) bool { return t.Map[i].Offset > off })
	if i == 0 {
		return Unmapped
	}
	return t.Map[i-1].Encoding
}

// At returns the n bytes at section offset off, or nil when the text does
// not hold all of them.
func (t Text) At(off uint64, n int) []byte {
	if off < t.Start || off-t.Start > uint64(len(t.Code)) {
		return nil
	}
	b := t.Code[off-t.Start:]
	if len(b) < n {
		return nil
	}
	return b[:n:n]
}

// Site is an instruction, or a fixed sequence of them, that reaches a stub, or does
// nothing where a probe is (Nop).
type Site struct {
	Offset uint64 // of its first byte, from the start of the section
	Form   Form
	GOT    bool // reaches the stub through the global offset table
	// Register reports that it goes through registers, and that the relocation against the
	// stub is elsewhere (Follower).
	Register bool
	Code     []byte // its bytes as found
}

// Context is what the object around a site demands of its disabled form.
type Context struct {
	ReturnThunk bool // a bare return is forbidden; jump to the return thunk
	// Armable asks that the form of a probe call begins with an instruction that
	// kernels emulate when a breakpoint is put over it: that of a uprobe on Linux, where
	// others are executed elsewhere or become something else, and any on FreeBSD, whose
	// handler steps over one byte on x86.
	Armable bool
	// SemaphoreBytes asks that is-enabled tests load the semaphore of their probe, which
	// tracers count up, and says how many bytes of it may be loaded: 2, the whole of it,
	// or 4, where the next 2 stay zero. 0 means that tests load none, and return 0.
	SemaphoreBytes int
	// Reloc is the type of the relocation against the stub.
	Reloc uint32
	Text  Text // around the site
	// Returns are the relocations against the return thunk in the section of a site
	// of one of the forms in ReturnThunk.Near, sorted by offset.
	Returns []elfreloc.Relocation
}

// Target is what the relocation of a disabled site names.
type Target uint8

const (
	TargetNone       Target = iota // nothing: the relocation is neutralised
	TargetThunk                    // the return thunk
	TargetHelper                   // the helper: the machine's stub of is-enabled tests
	TargetTestHelper               // the probe's own helper, which loads its semaphore (Stub.Semaphore)
	TargetSemaphore                // the semaphore itself
)

// Change turns a site into its disabled form.
type Change struct {
	Site           Site
	New            []byte // as long as Site.Code; not to be modified
	RecordedOffset uint64 // offset of the instruction that executes exactly when the probe is reached
	Target         Target
	Reloc          elfreloc.Relocation // the relocation that the site keeps, unless Target is TargetNone
	// Low is one more, of an instruction that adds the lower bits of an address to what
	// Reloc is for. It names a symbol at Reloc.Offset. nil for none.
	Low *elfreloc.Relocation
}

// Stub asks for a function that does what a disabled site of a kind does. Programs
// that are linked without conversion call it. And the one of is-enabled tests is the
// helper, which disabled sites jump to that have no room to set a result and return.
type Stub struct {
	Kind       Kind
	LandingPad bool   // may be reached by indirect branches, which have to land on an instruction for it
	Thunk      string // the return thunk to jump to instead of returning, "" for none
	// Semaphore is the symbol of the 2 bytes whose value an is-enabled test returns, ""
	// for one that returns 0. Self is a symbol at the first byte of the code, for
	// machines whose relocations of an address take one (Traits.SelfReference).
	Semaphore, Self string
}

// Insn is an instruction as code and as what assemblers make it of. Where relocations
// are SHT_REL (Traits.Rela), Code has the addend in the relocated field.
type Insn struct {
	Code   []byte
	Text   string               // GNU's and clang's syntax, lines separated by "; "; with %s for Symbol, or that follows
	Symbol string               // what Reloc names, "" for nothing
	ToCode bool                 // Reloc names the code of the descriptor (Conventions.Descriptor) instead
	Reloc  *elfreloc.Relocation // from the start of Code, nil for none
}

// Source returns the instruction as assemblers take it, with a name for Symbol.
func (i Insn) Source(symbol string) string {
	switch {
	case i.Reloc == nil || i.Symbol == "":
		return i.Text
	case strings.Contains(i.Text, "%s"):
		return strings.Replace(i.Text, "%s", symbol, 1)
	}
	return i.Text + " " + symbol
}

// Machine is one instruction set under one ABI. Machines hold no state: they may be
// compared, and used from several goroutines. Code that they are given is not modified;
// what they return may share its bytes, as Site.Code does, and is not to be modified.
type Machine interface {
	Traits() *Traits

	// RelocName names a relocation type as readelf does.
	RelocName(typ uint32) string

	// Decode finds the site that relocs[0] belongs to. relocs are all
	// relocations at that offset, the one against the stub first. A form that
	// cannot be disabled is a *Refusal. A relocation that does nothing marks a Nop: what
	// Disable makes of a call that is none of the GOT, armable or not.
	Decode(t Text, relocs []elfreloc.Relocation) (Site, error)

	// Disable gives the disabled form of a site, or a *Refusal.
	Disable(s Site, k Kind, env Context) (Change, error)

	// Disabled finds the disabled site whose record is at offset record, and
	// reports whether the bytes are a disabled form of the kind at all, whatever
	// Context it was made for. A marked NOP is recognised as a disabled call.
	Disabled(t Text, record uint64, k Kind) (Site, bool)

	// Live reports whether the instruction at offset record is a call or a jump
	// to somewhere else, as a site is before its conversion and again when it
	// is switched on.
	Live(t Text, record uint64) bool

	// Branch tells where the direct call or jump at offset at goes, conditional or not,
	// as an offset too. Disabled takes some for disabled forms, wherever they go.
	Branch(t Text, at uint64) (to uint64, ok bool)

	// LoadedSemaphore returns the address of the semaphore that the code at offset at loads and
	// returns: at an is-enabled site, or where a helper begins (Stub.Semaphore), whose
	// landing pad may come first. It looks at Sizes.Load bytes. The offsets of text
	// have to be addresses.
	LoadedSemaphore(t Text, at uint64) (addr uint64, ok bool)

	// Branches calls f with each place of code, whose first byte is at address pc,
	// that holds a direct call or jump, and with where it goes. On machines whose
	// instructions differ in length some of these places are in the middle of
	// instructions, and lead anywhere.
	Branches(code []byte, pc uint64, f func(at, to uint64))

	// Slots calls f with each place of code that calls, jumps to or loads what a slot of
	// the global offset table holds, and with the slot's address. The entries of
	// procedure linkage tables are such places. got is the table's own address, which
	// matters to machines with Traits.SlotsFromTable.
	Slots(code []byte, pc, got uint64, f func(at, slot uint64))

	// Stub is the code of a stub, or of the helper. It runs wherever it is put.
	Stub(s Stub) []Insn

	// Disassemble shows code at address pc, an instruction a string. Bytes
	// that are none are shown as data.
	Disassemble(code []byte, pc uint64) []string
}

// FixDirect is what to compile differently where a stub's address is used.
const FixDirect = "call the stub directly, and do not take its address"

// RefuseNop refuses to disable a Nop of a kind that has none: nothing tells a test its
// result there.
func RefuseNop(k Kind) *Refusal {
	return Refuse("call the stub of an is-enabled test", "%s", withArticle(k, Nop))
}

// Refusal says why a site cannot be disabled.
type Refusal struct {
	Reason string // what was met
	Hint   string // what to compile differently, or ""
	// Address reports that the stub's address is taken there, and not called.
	Address bool
	// Object reports that the whole object does not fit, which need be said once.
	Object bool
}

func (r *Refusal) Error() string {
	text := r.Reason
	if !strings.HasPrefix(text, storedAddress) {
		text = "got " + text
	}
	if r.Hint != "" {
		text += "; " + r.Hint
	}
	return text
}

// storedAddress begins the reason of a refusal of RefuseStored.
const storedAddress = "the stub's address is stored in data"

// RefuseStored makes a *Refusal for data that holds a stub's address. where is empty, or says
// where the data is.
func RefuseStored(hint, where string) *Refusal {
	return &Refusal{Reason: storedAddress + where, Hint: hint, Address: true}
}

// Refuse makes a *Refusal for an instruction.
func Refuse(hint, format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...), Hint: hint}
}

// RefuseSite makes a *Refusal for a site of a kind and form, which the reason begins with.
func RefuseSite(k Kind, f Form, hint, format string, args ...any) *Refusal {
	return Refuse(hint, "%s%s", withArticle(k, f), fmt.Sprintf(format, args...))
}

// RefuseAddress makes a *Refusal for a reference that takes a stub's address.
func RefuseAddress(hint, format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...), Hint: hint, Address: true}
}
