package image

import (
	"debug/elf"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"

	"sdtconvert/elfreloc"
)

// names finds the symbols of an address. It is a hash table and not a sorted
// list, because a table of a million symbols takes ten times as long to sort as
// to read twice. The symbols of bucket i are order[start[i]:start[i+1]], in the
// order of the symbol table.
type names struct {
	table       *elfreloc.Symbols
	relocatable bool // addresses have sections
	start       []uint32
	order       []uint32
	mask        uint32
	seed        uint64 // against files made to fill one bucket
	left        int    // bytes of long names that may still be told
}

// maxNames bounds the names of one address. A hostile table has all of its
// symbols at one.
const maxNames = 64

// allLongNames bounds all names of addresses that are told, in bytes, but for the first
// longName bytes of each: names in a hostile table share their bytes.
const allLongNames, longName = 16 << 20, 128

func indexNames(t *elfreloc.Symbols, relocatable bool) *names {
	width := bits.Len(uint(t.Len()))
	n := &names{table: t, relocatable: relocatable, mask: 1<<width - 1, seed: rand.Uint64(), left: allLongNames}
	n.start = make([]uint32, 1<<width+1)
	const undefined = ^uint32(0)
	buckets := make([]uint32, t.Len())
	for i := range buckets {
		buckets[i] = undefined
		if a, ok := n.place(i); ok && i > 0 {
			buckets[i] = n.bucket(a)
			n.start[buckets[i]+1]++
		}
	}
	for i := 1; i < len(n.start); i++ {
		n.start[i] += n.start[i-1]
	}
	n.order = make([]uint32, n.start[len(n.start)-1])
	// Each start moves to its bucket's end, which is where the next one began.
	for i, b := range buckets {
		if b != undefined {
			n.order[n.start[b]] = uint32(i)
			n.start[b]++
		}
	}
	copy(n.start[1:], n.start[:len(n.start)-1])
	n.start[0] = 0
	return n
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

// bucket scatters pages, and keeps neighbours together within each: symbols are
// mostly in the order of their addresses, and so is the memory that this takes.
func (n *names) bucket(a Addr) uint32 {
	const odd1, odd2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93 // mix all bits into the upper ones
	h := (a.Offset>>12 ^ n.seed + uint64(a.Section)*odd2) * odd1
	h = (h ^ h>>32) * odd2 >> 32
	return uint32(h+a.Offset&0xfff>>3) & n.mask
}

// lookup returns the names of an address, in the order of the object's table.
func (n *names) lookup(o *elfreloc.Object, a Addr) ([]string, error) {
	var all []string
	b := n.bucket(a)
	for _, i := range n.order[n.start[b]:n.start[b+1]] {
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
		if all = append(all, s.Name); len(all) == maxNames {
			break
		}
	}
	return all, nil
}

// isLabel recognises the names that say nothing to a reader: none, mapping symbols
// ($x) and local labels (.L).
func isLabel(name string) bool {
	return name == "" || strings.HasPrefix(name, "$") || strings.HasPrefix(name, ".L")
}

func fileError(o *elfreloc.Object, format string, args ...any) error {
	return &elfreloc.Error{File: o.Name, Err: fmt.Errorf(format, args...)}
}
