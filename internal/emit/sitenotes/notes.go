package sitenotes

import (
	"encoding/binary"

	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// align is what notes and their descriptions are aligned to, in bytes.
const align = 4

// Notes are the contents of a section of notes, and its fields that refer to
// something.
type Notes struct {
	layout elfreloc.Encoding
	rela   bool
	data   []byte
	fields []field
}

type field struct {
	offset uint64
	to     linkerset.SymbolRef
}

// Add appends a note (gABI, "Note Section"): its header, the owner with its NUL, and
// what describe appends.
func (n *Notes) Add(owner string, typ uint32, describe func(n *Notes)) {
	header := len(n.data)
	n.data = append(n.data, make([]byte, 12)...)
	n.String(owner)
	n.pad()
	start := len(n.data)
	describe(n)
	order := n.layout.Order
	order.PutUint32(n.data[header:], uint32(len(owner)+1))
	order.PutUint32(n.data[header+4:], uint32(len(n.data)-start))
	order.PutUint32(n.data[header+8:], typ)
	n.pad()
}

func (n *Notes) pad() {
	for len(n.data)%align != 0 {
		n.data = append(n.data, 0)
	}
}

// Word appends an address, of the class's word size: 0 for the zero Ref.
func (n *Notes) Word(to linkerset.SymbolRef) {
	at := len(n.data)
	n.data = append(n.data, make([]byte, n.layout.Word())...)
	if to == (linkerset.SymbolRef{}) {
		return
	}
	n.fields = append(n.fields, field{uint64(at), to})
	if !n.rela {
		n.layout.PutWord(n.data[at:], uint64(to.Addend))
	}
}

// Word64 appends an address as 64 bits, whatever the class.
func (n *Notes) Word64(to linkerset.SymbolRef) {
	rest := make([]byte, 8-n.layout.Word())
	if n.layout.Order == binary.ByteOrder(binary.BigEndian) {
		n.data, rest = append(n.data, rest...), nil
	}
	n.Word(to)
	n.data = append(n.data, rest...)
}

// Byte appends one byte.
func (n *Notes) Byte(b byte) { n.data = append(n.data, b) }

// String appends a string and its NUL.
func (n *Notes) String(s string) { n.data = append(append(n.data, s...), 0) }
