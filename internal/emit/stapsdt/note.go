package stapsdt

import (
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// notes are the contents of a section of notes, and its fields that refer to
// something.
type notes struct {
	layout elfreloc.Encoding
	data   []byte
	fields []field
}

type field struct {
	offset uint64
	to     linkerset.Ref
}

// add appends the note of a probe: its header, three words, the last of which is
// the address of its semaphore, and three strings.
func (n *notes) add(p Probe, base linkerset.Ref, rela bool) {
	word := n.layout.Word()
	size := 3*word + len(p.Provider) + len(p.Name) + len(p.Args) + 3
	for _, v := range []int{len(owner), size, noteType} {
		n.data = append(n.data, 0, 0, 0, 0)
		n.layout.Order.PutUint32(n.data[len(n.data)-4:], uint32(v))
	}
	n.data = append(n.data, owner...)
	n.word(p.Site, rela)
	n.word(base, rela)
	if p.Semaphore == (linkerset.Ref{}) {
		n.data = append(n.data, make([]byte, word)...)
	} else {
		n.word(p.Semaphore, rela)
	}
	for _, s := range []string{p.Provider, p.Name, p.Args} {
		n.data = append(append(n.data, s...), 0)
	}
	for len(n.data)%4 != 0 {
		n.data = append(n.data, 0)
	}
}

func (n *notes) word(to linkerset.Ref, rela bool) {
	at := len(n.data)
	n.fields = append(n.fields, field{uint64(at), to})
	n.data = append(n.data, make([]byte, n.layout.Word())...)
	if !rela {
		n.layout.PutWord(n.data[at:], uint64(to.Addend))
	}
}
