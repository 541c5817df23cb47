// Package image is one view of all that holds probe records: an object that is
// not linked yet, a linked file, and a running process.
//
// What differs between them is what an address is, and who has put the value
// into a field that refers to another place: a relocation that the linker will
// apply, one that the loader will apply, or a loader that has done so.
//
// Begin with Open for a file, or OpenProcess. Word and Distance follow a field,
// Arrays finds the sections of a name; package linkerset reads records with them.
//
// An image reads what is asked for when it is asked for. So it serves one goroutine at
// a time, what it was opened with has to be there until it is not used any more, and
// any method may meet what is wrong with a file: an *elfreloc.Error that names the
// file and the place. Sizes and offsets are in bytes.
package image

import (
	"cmp"
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Addr is a place. In a relocatable object it is an offset in a section;
// everywhere else Section is 0 and Offset is the address.
type Addr struct {
	Section int
	Offset  uint64
}

// Add returns the place n bytes further on, which wraps around at 2^64.
func (a Addr) Add(n uint64) Addr { return Addr{a.Section, a.Offset + n} }

// Compare orders places by section and offset.
func Compare(a, b Addr) int {
	return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Offset, b.Offset))
}

// Ref is what a field refers to.
type Ref struct {
	Addr // meaningless when Undefined
	// Symbol is the name of the symbol that the field goes through, "" when it
	// goes through none or through a nameless one.
	Symbol string
	// Undefined tells that Symbol is not defined here. One that is defined here
	// is taken to be this definition, though the loader may let an earlier module
	// interpose its own: what it has decided, a process tells.
	Undefined bool
}

// Null reports whether the field is a null pointer.
func (r Ref) Null() bool { return !r.Undefined && r.Symbol == "" && r.Addr == Addr{} }

// Range is where an array of records stands.
type Range struct {
	Name     string // of the section
	Start    Addr
	Size     uint64 // bytes
	Writable bool
}

// Image is what holds records.
type Image interface {
	// Name is the name of the file, or of the process.
	Name() string
	Machine() arch.Machine // never nil
	Layout() elfreloc.Layout

	// Place shows an address in messages: ".text+0x10", or "0x401010".
	Place(a Addr) string
	// Executable reports whether an address is in code.
	Executable(a Addr) bool
	// FileOffset is where in the file an address is, which may be in none.
	FileOffset(a Addr) (off uint64, ok bool)
	// Bytes reads n bytes as they are once the image is loaded, but for the
	// fields that a loader relocates. They are not to be modified. Bytes that are
	// not all in the image are an error.
	Bytes(a Addr, n uint64) ([]byte, error)
	// Word reads an address-sized field, relocated. Of a field that nothing
	// relocates, Ref.Offset is the number that it holds.
	Word(a Addr) (Ref, error)
	// Distance reads a signed 32-bit field that holds a distance from itself.
	Distance(a Addr) (Ref, error)
	// Arrays finds the loaded sections of a name, by place: by their headers, or
	// where there are none, by the symbols __start_<name> and __stop_<name>. That
	// there are none is no error.
	Arrays(name string) ([]Range, error)
	// SymbolsAt lists the names of the symbols that stand at an address and are
	// no local labels and no mapping symbols, in the order of the table.
	SymbolsAt(a Addr) ([]string, error)
}

// Open makes the image of an object (ET_REL), which is an *Object, or of a linked file
// (ET_EXEC, ET_DYN), a *Linked. Other types, and a machine that is nil, are errors. It
// reads the program headers alone.
func Open(o *elfreloc.Object, m arch.Machine) (Image, error) {
	if m == nil {
		return nil, fileError(o, "the machine %v is not supported", o.Machine)
	}
	switch o.Type {
	case elf.ET_REL:
		return openObject(o, m), nil
	case elf.ET_EXEC, elf.ET_DYN:
		return openLinked(o, m, 0)
	}
	return nil, fileError(o, "an ELF file of type %v holds no probes", o.Type)
}

func fileError(o *elfreloc.Object, format string, args ...any) error {
	return &elfreloc.Error{File: o.Name, Err: fmt.Errorf(format, args...)}
}
