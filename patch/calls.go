package patch

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// Reference is a relocation against a stub in a section that is loaded. The place is
// Reloc.Offset of section Relocs.Target.
type Reference struct {
	Relocs *elfreloc.RelocSection
	Index  int                   // of the relocation in Relocs
	Reloc  elfreloc.Relocation   // the relocation itself
	Paired []elfreloc.Relocation // the relocations behind it, at the same offset
	Stub   *Stub
}

func (r *Reference) place() image.Addr {
	return image.Addr{Section: r.Relocs.Target, Offset: r.Reloc.Offset}
}

// Calls are the references of an object from code, sorted by section and offset. An object
// may have hundreds of thousands, so what they share is kept once.
type Calls struct {
	rels   []elfreloc.RelocSection
	stubs  []*Stub
	all    []call
	paired [][]elfreloc.Relocation
}

// call is a Reference. maxReferences bounds how many there are.
type call struct {
	offset uint64
	addend int64
	index  int // of the relocation
	typ    uint32
	rel    uint32 // index in Calls.rels
	stub   uint32 // index in Calls.stubs
	paired uint32 // index in Calls.paired, plus 1; 0 for none
}

// Len returns how many references there are.
func (c *Calls) Len() int { return len(c.all) }

// At returns reference i.
func (c *Calls) At(i int) Reference {
	of := &c.all[i]
	rs, stub := &c.rels[of.rel], c.stubs[of.stub]
	r := Reference{Relocs: rs, Index: of.index, Stub: stub}
	r.Reloc = elfreloc.Relocation{Offset: of.offset, Sym: stub.Symbol, Type: of.typ, Addend: of.addend, Implicit: !rs.Rela}
	if of.paired > 0 {
		r.Paired = c.paired[of.paired-1]
	}
	return r
}

// All returns all references, in order.
func (c *Calls) All() iter.Seq[Reference] {
	return func(yield func(Reference) bool) {
		for i := range c.all {
			if !yield(c.At(i)) {
				return
			}
		}
	}
}

// in returns the references in a section, in order.
func (c *Calls) in(section int) iter.Seq[Reference] {
	from := sort.Search(len(c.all), func(i int) bool { return c.target(&c.all[i]) >= section })
	return func(yield func(Reference) bool) {
		for i := from; i < len(c.all) && c.target(&c.all[i]) == section && yield(c.At(i)); i++ {
		}
	}
}

// add adds a relocation of a section against a stub, both by their indexes.
func (c *Calls) add(rel, stub uint32, index int, r elfreloc.Relocation) {
	c.all = append(c.all, call{offset: r.Offset, addend: r.Addend, index: index, typ: r.Type, rel: rel, stub: stub})
}

// usualCalls is how many calls there is room for at first.
const usualCalls = 32

func (c *Calls) full() bool { return len(c.all) == cap(c.all) }

// grow makes room for the calls among the relocations that are left in a section,
// where so many of those read were calls. A few say nothing about the others.
func (c *Calls) grow(left, calls, read uint64) {
	expected := uint64(usualCalls)
	if calls > usualCalls {
		expected += left * calls / read * 9 / 8
	}
	c.all = slices.Grow(c.all, int(min(left, expected)))
}

// pair adds a relocation to the last reference.
func (c *Calls) pair(r elfreloc.Relocation) {
	last := &c.all[len(c.all)-1]
	if last.paired == 0 {
		c.paired = append(c.paired, nil)
		last.paired = uint32(len(c.paired))
	}
	c.paired[last.paired-1] = append(c.paired[last.paired-1], r)
}

// haveType reports whether a reference is of a type of relocation.
func (c *Calls) haveType(typ uint32) bool {
	return slices.ContainsFunc(c.all, func(of call) bool { return of.typ == typ })
}

// sort sorts the references.
func (c *Calls) sort() {
	sortStable(c.all, func(a, b call) int {
		if order := cmp.Compare(c.target(&a), c.target(&b)); order != 0 {
			return order
		}
		return cmp.Compare(a.offset, b.offset)
	})
}

// target returns the section that holds a call.
func (c *Calls) target(of *call) int { return c.rels[of.rel].Target }
