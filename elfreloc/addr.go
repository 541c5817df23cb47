package elfreloc

import "cmp"

// Addr is an address. In a relocatable object it is an offset in a section;
// everywhere else Section is 0 and Offset is the address.
type Addr struct {
	Section int
	Offset  uint64
}

// Add returns the address n bytes further on, which wraps around at 2^64.
func (a Addr) Add(n uint64) Addr { return Addr{a.Section, a.Offset + n} }

// Compare orders addresses by section and offset.
func (a Addr) Compare(b Addr) int {
	return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Offset, b.Offset))
}
