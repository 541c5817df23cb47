package patch

import (
	"fmt"

	"sdtconvert/elfreloc"
)

// Limits of what one object may have. Objects are untrusted: names may
// share their bytes, and relocations may take one byte each. What is made of both
// outlives the object, in records, notes, messages and listings. The limits are far
// beyond what compilers write, so that an object beyond them is refused.

// maxReferences bounds the references to stubs in one object. An object of all of
// Linux has fewer functions.
const maxReferences = 1 << 20

// maxStubs bounds the stubs of one object. What a link needs for a probe takes a
// thousand times as much memory as its symbol.
const maxStubs = 1 << 17

// leastSize is how many bytes a reference to a stub takes on average at least: an
// instruction, or an address. More references than that overlap.
const leastSize = 4

// maxRefused bounds how many references a plan explains its refusal of.
const maxRefused = 1000

// maxStubName bounds the name of a stub, in bytes.
const maxStubName = 16 << 10

// nameShare and nameBase bound the sum of all names of stubs, once for each stub and
// once for each reference to it: nameShare times the size of the object, and nameBase
// bytes.
const nameShare, nameBase = 16, 1 << 20

// limits counts what an object has.
type limits struct {
	names             int64 // bytes of names that there is room for
	stubs, references int
}

func newLimits(o *elfreloc.Object) limits { return limits{names: nameShare*o.Held() + nameBase} }

// stub counts a stub.
func (l *limits) stub(o *elfreloc.Object, name string) error {
	if len(name) > maxStubName {
		return &elfreloc.Error{File: o.Name, Err: fmt.Errorf(
			"the stub %.40q... has a name of %d bytes, and at most %d are supported; choose a shorter name", name, len(name), maxStubName)}
	}
	if l.stubs++; l.stubs > maxStubs {
		return &elfreloc.Error{File: o.Name, Err: fmt.Errorf("more than %d stubs in one object; divide it", maxStubs)}
	}
	return l.name(o, name)
}

// reference counts a relocation against a stub, or one that goes with it. stub is nil then.
func (l *limits) reference(o *elfreloc.Object, rs *elfreloc.RelocSection, stub *Stub) error {
	if l.references++; l.references > maxReferences {
		return o.SectionError(rs.Index, fmt.Errorf("more than %d references to stubs in one object; divide it", maxReferences))
	}
	if stub == nil {
		return nil
	}
	return l.name(o, stub.Name)
}

// name counts a name that something is made of.
func (l *limits) name(o *elfreloc.Object, name string) error {
	if l.names -= int64(len(name)); l.names < 0 {
		return &elfreloc.Error{File: o.Name, Err: fmt.Errorf(
			"the names of stubs, counted at each use, have more than %d times as many bytes as the object; choose shorter names", nameShare)}
	}
	return nil
}
