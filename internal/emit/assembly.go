// Package emit writes objects from nothing: the definitions that a link still needs
// (requirements.go, definitions.go), the records of objects that stay as they are (records.go,
// recordsource.go), and the notes that linkers ask of every object (linknotes.go).
//
// The caller describes an object with the methods of an assembler in the order of the
// file, and cannot tell whether it becomes ELF, with a writer of our own (object.go), or source
// that GNU's and clang's assemblers take (text.go). So what the source says is what
// the object holds.
package emit

import (
	"cmp"
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
)

// Section begins a section.
type Section struct {
	Name  string
	Type  elf.SectionType // SHT_PROGBITS or SHT_NOTE
	Flags elf.SectionFlag // without SHF_GROUP
	Align uint64
	Group string // the signature of the COMDAT group it is in, "" for none
}

// Symbol is a symbol that a Label defines.
type Symbol struct {
	Name   string
	Bind   elf.SymBind // STB_WEAK or STB_GLOBAL
	Type   elf.SymType
	Hidden bool
	Size   uint64
}

// assembler writes an object. A name that begins with ".L" is that of a local
// label, and leaves no symbol. Any other name that nothing defines is undefined.
type assembler interface {
	Section(s Section)
	Symbol(s Symbol)                // here
	Label(local string)             // here
	Word(name string, addend int64) // the address of a name, plus a number; "" for the number alone
	Int(v uint32)                   // in 4 bytes
	String(s string)                // with a NUL behind it
	Zero(n int)                     // so many bytes
	Align(n int)                    // zeroes up to a multiple, in bytes
	Insn(i arch.Insn)               //
	Keep(at, name string)           // what keeps local label at keeps a local label's section
	Err() error                     // the first thing that could not be written
}

// isLocal reports whether a name is that of a local label.
func isLocal(name string) bool { return len(name) > 2 && name[:2] == ".L" }

// nameFaults finds out what is defined twice, and keeps the first error.
type nameFaults struct {
	defined map[string]bool
	err     error
}

// Err returns the first error.
func (f *nameFaults) Err() error { return f.err }

func (f *nameFaults) fail(err error) { f.err = cmp.Or(f.err, err) }

// checkName fails for a name that was defined before.
func (f *nameFaults) checkName(name string) {
	if f.defined[name] {
		f.fail(fmt.Errorf("two definitions of %q are needed in one object", name))
	}
	f.defined[name] = true
}
