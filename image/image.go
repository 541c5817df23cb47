// Package image is one view of all that holds probe records: an object that is
// not linked yet, a linked file, and a running process.
//
// What differs between them is what an address is, and what has put the value
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
	"debug/elf"
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Addr is an address of an image: in a relocatable object an offset in a section;
// everywhere else Section is 0.
type Addr = elfreloc.Addr

// Ref is what a field refers to.
type Ref struct {
	Addr // meaningless when Undefined
	// Symbol is the name of the symbol that the field goes through, "" when it
	// goes through none or through a nameless one.
	Symbol string
	// Undefined reports that Symbol is not defined here. One that is defined here
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

// Image is what holds records. Errors name the file, or the process, and the place.
// An image reads its file, or the memory of its process, for as long as it is used,
// keeps what it has read of tables, and serves one goroutine at a time. So what is
// done with one file is best done with one image.
type Image interface {
	// Name is the name of the file, or of the process.
	Name() string
	Machine() arch.Machine // never nil
	Encoding() elfreloc.Encoding

	// Place shows an address in messages: ".text+0x10", or "0x401010".
	Place(a Addr) string
	// Executable reports whether an address is in code.
	Executable(a Addr) bool
	// FileOffset is where in the file an address is, in bytes from its start. Of
	// what is in no file, as .bss is, ok is false.
	FileOffset(a Addr) (off uint64, ok bool)
	// Bytes reads n bytes as they are once the image is loaded, but for the
	// fields that a loader relocates. They are not to be modified: another
	// call may return the same memory. Fewer than n bytes there are an error.
	Bytes(a Addr, n uint64) ([]byte, error)
	// Word reads a field of the size of an address (Encoding.Word bytes), relocated.
	// Of a field that nothing relocates, Ref.Offset is the number that it holds.
	Word(a Addr) (Ref, error)
	// Distance reads a field of 32 bits that holds a signed distance from itself in
	// bytes.
	Distance(a Addr) (Ref, error)
	// Arrays finds the sections of a name: by their headers, or where there are
	// none, by the symbols __start_<name> and __stop_<name>. They are sorted by
	// address and do not overlap; without any there is no error.
	Arrays(name string) ([]Range, error)
	// SymbolsAt lists the names of the symbols that stand at an address and are
	// no local labels and no mapping symbols, in the order of the table, at most 64
	// of them.
	SymbolsAt(a Addr) ([]string, error)
}

// Open makes the image of an object (ET_REL), or of a linked file
// (ET_EXEC, ET_DYN). Of a linked file it reads the program headers and PT_DYNAMIC (gABI,
// chapter 5), of an object nothing; the rest is read when it is asked for. Other
// types, and a machine that is not known (nil), are an error.
func Open(o *elfreloc.Object, m arch.Machine) (Image, error) {
	if m == nil {
		return nil, fileError(o, "the machine %v is not supported", o.Machine)
	}
	switch o.Type {
	case elf.ET_REL:
		return &object{o: o, m: m, relocs: map[int][]elfreloc.Relocation{}}, nil
	case elf.ET_EXEC, elf.ET_DYN:
		return openLinked(o, m, 0)
	}
	return nil, fileError(o, "an ELF file of type %v holds no probes", o.Type)
}

// plainWord reads the number in a field of the size of an address.
func plainWord(im Image, a Addr) (uint64, error) {
	data, err := im.Bytes(a, uint64(im.Encoding().Word()))
	if err != nil {
		return 0, err
	}
	return im.Encoding().GetWord(data), nil
}

// plainDistance follows a distance that no relocation changes.
func plainDistance(im Image, a Addr) (Ref, error) {
	data, err := im.Bytes(a, 4)
	if err != nil {
		return Ref{}, err
	}
	return Ref{Addr: a.Add(distanceIn(im)(data))}, nil
}

// distanceIn returns what reads a signed number of 32 bits in an image.
func distanceIn(im Image) func(field []byte) uint64 {
	return func(field []byte) uint64 { return uint64(int64(int32(im.Encoding().Order.Uint32(field)))) }
}

func fileError(o *elfreloc.Object, format string, args ...any) error {
	return &elfreloc.Error{File: o.Name, Err: fmt.Errorf(format, args...)}
}

// names finds the symbols of an address. It is a hash table and not a sorted
// list, because a table of a million symbols takes ten times as long to sort as
// to read twice.
type names struct {
	table       *elfreloc.Symbols
	relocatable bool // addresses have sections
	seed        maphash.Seed
	heads       []uint32 // by hash: the first symbol, 0 for none
	next        []uint32 // by symbol: the next one of the same hash
	left        int      // bytes of long names that may still be told
}

// maxNames bounds the names of one address. A hostile table has all of its
// symbols at one.
const maxNames = 64

// allLongNames bounds all names of addresses that are told, in bytes, but for the first
// longName bytes of each: names in a hostile table share their bytes.
const allLongNames, longName = 16 << 20, 128

func indexNames(t *elfreloc.Symbols, relocatable bool) *names {
	n := &names{table: t, relocatable: relocatable, seed: maphash.MakeSeed(), left: allLongNames}
	n.heads, n.next = make([]uint32, 1<<bits.Len(uint(t.Len()))), make([]uint32, t.Len())
	for i := t.Len() - 1; i > 0; i-- {
		if a, ok := n.place(i); ok {
			head := n.head(a)
			*head, n.next[i] = uint32(i), *head
		}
	}
	return n
}

// head returns the first symbol of an address's hash.
func (n *names) head(a Addr) *uint32 {
	return &n.heads[maphash.Comparable(n.seed, a)&uint64(len(n.heads)-1)]
}

// place returns where symbol i stands, if it is defined.
func (n *names) place(i int) (Addr, bool) {
	section, value := n.table.Place(i)
	switch {
	case section == 0 || section == elfreloc.SectionCommon:
		return Addr{}, false
	case !n.relocatable || section < 0:
		section = 0
	}
	return Addr{Section: section, Offset: value}, true
}

// lookup returns the names of an address, in the order of the object's table.
func (n *names) lookup(o *elfreloc.Object, a Addr) ([]string, error) {
	var found []string
	for i := *n.head(a); i != 0 && len(found) < maxNames; i = n.next[i] {
		if at, _ := n.place(int(i)); at != a {
			continue
		}
		s := n.table.At(int(i))
		if s.Type == elf.STT_FILE || s.Type == elf.STT_SECTION || s.Type == elf.STT_TLS || isLabel(s.Name) {
			continue
		}
		if n.left -= max(0, len(s.Name)-longName); n.left < 0 {
			return nil, fileError(o, "more than %d MiB of long symbol names at the addresses of probes; they share their bytes", allLongNames>>20)
		}
		found = append(found, s.Name)
	}
	return found, nil
}

// isLabel recognises the names that say nothing to a reader: none, mapping symbols
// ($x) and local labels (.L).
func isLabel(name string) bool {
	return name == "" || strings.HasPrefix(name, "$") || strings.HasPrefix(name, ".L")
}
