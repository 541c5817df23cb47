package image

import (
	"debug/elf"
	"hash/maphash"
	"math/bits"
	"strings"

	"sdtconvert/elfreloc"
)

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
	var all []string
	for i := *n.head(a); i != 0 && len(all) < maxNames; i = n.next[i] {
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
		all = append(all, s.Name)
	}
	return all, nil
}

// isLabel recognises the names that say nothing to a reader: none, mapping symbols
// ($x) and local labels (.L).
func isLabel(name string) bool {
	return name == "" || strings.HasPrefix(name, "$") || strings.HasPrefix(name, ".L")
}
