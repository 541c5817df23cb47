package patch

import (
	"cmp"
	"fmt"
	"iter"

	"sdtconvert/arch"
)

// Site is a reference with its disabled form.
type Site struct {
	Reference
	Change arch.Change
	// Operands say where the arguments of a marked nop are, as notes have them; "" for
	// all other forms, whose arguments are where a call has them.
	Operands string
	// Shared reports that the relocation is that of another site, too: a stub's address was
	// loaded once for both.
	Shared bool
}

// Sites are the sites of a plan, sorted by section and offset. Most need little of what
// a Site may say, and an object may have hundreds of thousands.
type Sites struct {
	calls *Calls
	all   []site
	code  []byte     // of all sites, before and after
	more  []moreSite // of those that have more
}

// site is a Site.
type site struct {
	offset uint64 // Change.Site.Offset
	code   uint64 // where its bytes are in Sites.code: before, and behind them after
	call   uint32 // index in Sites.calls
	more   uint32 // index in Sites.more, plus 1; 0 for nothing
	number uint32 // among the sites of its section and kind, once the sites are sorted
	record int16  // Change.Record, from offset
	length uint8  // of its bytes
	flags  uint8  // and its form
}

// What is in site.flags.
const (
	siteForm     = 0x0f // the form
	siteGOT      = 0x10
	siteRegister = 0x20
	siteShared   = 0x40
)

// moreSite is what few sites have.
type moreSite struct {
	target   arch.Target
	reloc    arch.Reloc
	low      *arch.Reloc
	operands string
}

// newSites makes an empty list with room for a site of each reference.
func newSites(calls *Calls) Sites {
	const usual = 5 // bytes of a site
	return Sites{calls: calls, all: make([]site, 0, calls.Len()), code: make([]byte, 0, 2*usual*calls.Len())}
}

// Len returns how many sites there are.
func (s *Sites) Len() int { return len(s.all) }

// At returns site i.
func (s *Sites) At(i int) Site {
	of := &s.all[i]
	is := Site{Reference: s.calls.At(int(of.call)), Shared: of.flags&siteShared != 0}
	c := &is.Change
	c.Site = arch.Site{Offset: of.offset, Form: of.form(), GOT: of.flags&siteGOT != 0, Register: of.flags&siteRegister != 0}
	c.Site.Code, c.New = s.bytes(of)
	c.Record = of.recorded()
	if of.more > 0 {
		more := &s.more[of.more-1]
		c.Target, c.Reloc, c.Low, is.Operands = more.target, more.reloc, more.low, more.operands
	}
	return is
}

// All returns all sites, in order.
func (s *Sites) All() iter.Seq[Site] {
	return func(yield func(Site) bool) {
		for i := range s.all {
			if !yield(s.At(i)) {
				return
			}
		}
	}
}

// bytes returns the bytes of a site before and after.
func (s *Sites) bytes(of *site) (before, after []byte) {
	middle := of.code + uint64(of.length)
	end := middle + uint64(of.length)
	return s.code[of.code:middle:middle], s.code[middle:end:end]
}

func (of *site) recorded() uint64 { return of.offset + uint64(int64(of.record)) }

func (of *site) form() arch.Form { return arch.Form(of.flags & siteForm) }

// add adds a site of the reference of an index. The bytes of the site are copied.
func (s *Sites) add(call int, shared bool, c *arch.Change, operands string) {
	of := site{
		offset: c.Site.Offset, code: uint64(len(s.code)), call: uint32(call), record: int16(c.Record - c.Site.Offset),
		length: uint8(len(c.Site.Code)), flags: uint8(c.Site.Form),
	}
	if int(of.length) != len(c.Site.Code) || of.recorded() != c.Record {
		panic("patch: a site that no machine has")
	}
	of.set(siteGOT, c.Site.GOT)
	of.set(siteRegister, c.Site.Register)
	of.set(siteShared, shared)
	s.code = append(append(s.code, c.Site.Code...), c.New...)
	if more := (moreSite{c.Target, c.Reloc, c.Low, operands}); more != (moreSite{}) {
		s.more = append(s.more, more)
		of.more = uint32(len(s.more))
	}
	s.all = append(s.all, of)
}

func (of *site) set(flag uint8, set bool) {
	if set {
		of.flags |= flag
	}
}

// call returns the reference of a site as the list keeps it.
func (s *Sites) call(of *site) *call { return &s.calls.all[of.call] }

// target returns the section of a site.
func (s *Sites) target(i int) int { return s.calls.target(s.call(&s.all[i])) }

// kind returns the kind of a site.
func (s *Sites) kind(i int) arch.Kind { return s.calls.stubs[s.call(&s.all[i]).stub].Kind }

// sort brings the sites of a plan in order, and refuses those that share bytes with the one
// before.
func (p *Plan) sort() {
	s := &p.Sites
	sortStable(s.all, func(a, b site) int {
		if order := cmp.Compare(s.calls.target(s.call(&a)), s.calls.target(s.call(&b))); order != 0 {
			return order
		}
		return cmp.Compare(a.offset, b.offset)
	})
	all, kept := s.all, s.all[:0]
	for i := range all {
		if n := len(kept); n > 0 && s.overlap(&kept[n-1], &all[i]) {
			last, ref := &kept[n-1], s.calls.At(int(all[i].call))
			p.refuse(&ref, fmt.Errorf("its bytes overlap those of the site at %#x against %q", last.offset, s.calls.stubs[s.call(last).stub].Name))
			continue
		}
		kept = append(kept, all[i])
	}
	s.all = kept
	s.count()
	sortStable(p.Refused[min(len(p.Scan.Refused), len(p.Refused)):], func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Relocs.Target, b.Relocs.Target), cmp.Compare(a.Reloc.Offset, b.Reloc.Offset))
	})
}

// needsNoRelocation reports whether the one relocation of a site is its own, and not needed
// once it is disabled.
func (s *Sites) needsNoRelocation(i int) bool {
	of := &s.all[i]
	return of.flags&(siteRegister|siteShared) == 0 && s.call(of).paired == 0 && (of.more == 0 || s.more[of.more-1].target == arch.TargetNone)
}

// count numbers the sites.
func (s *Sites) count() {
	var numbers [arch.Kinds]uint32
	for i := range s.all {
		if i > 0 && s.target(i) != s.target(i-1) {
			numbers = [arch.Kinds]uint32{}
		}
		kind := s.kind(i)
		s.all[i].number = numbers[kind]
		numbers[kind]++
	}
}

// some are some of a list of sites.
type some struct {
	from, len int
	indexes   []int32 // nil for all of them, from the one of an index on
}

// among returns those of the sites, from an index up to another, that are wanted.
func (s *Sites) among(from, to int, wanted func(i int) bool) some {
	for i := from; i < to; i++ {
		if wanted(i) {
			continue
		}
		indexes := make([]int32, 0, to-from)
		for i := from; i < to; i++ {
			if wanted(i) {
				indexes = append(indexes, int32(i))
			}
		}
		return some{len: len(indexes), indexes: indexes}
	}
	return some{from: from, len: to - from}
}

// at returns the index of one of them.
func (s some) at(i int) int {
	if s.indexes == nil {
		return s.from + i
	}
	return int(s.indexes[i])
}

// overlap reports whether a site shares bytes with one before it.
func (s *Sites) overlap(before, of *site) bool {
	return s.calls.target(s.call(before)) == s.calls.target(s.call(of)) && of.offset < before.offset+uint64(before.length)
}
