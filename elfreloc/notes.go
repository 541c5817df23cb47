package elfreloc

import (
	"fmt"
	"iter"
)

// Note is an entry of a section or segment of notes (gABI, chapter 5, "Note Section").
type Note struct {
	Owner  []byte // as the file has it, mostly with a NUL
	Type   uint32 // the owner defines it
	Desc   []byte
	Offset uint64 // of Desc, from the start of the notes, bytes
}

// Notes returns the notes in data. align is that of the section or segment: parts of notes
// are padded to 8 bytes if it is 8, and else to 4. It ends with an error at a note that is cut
// off, whose start is the Offset then: where another would begin is not known.
func (e Encoding) Notes(data []byte, align uint64) iter.Seq2[Note, error] {
	const head = 12 // the sizes of the owner and of Desc, and the type
	if align != 8 {
		align = 4
	}
	pad := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	size := uint64(len(data))
	return func(yield func(Note, error) bool) {
		for at := uint64(0); at < size; {
			if size-at < head {
				yield(Note{Offset: at}, fmt.Errorf("%d bytes are too few for the header of a note", size-at))
				return
			}
			word := func(i uint64) uint32 { return e.Order.Uint32(data[at+4*i:]) }
			owner := at + head + uint64(word(0))
			start := at + pad(head+uint64(word(0)))
			end := start + uint64(word(1))
			if end > size {
				yield(Note{Offset: at}, fmt.Errorf("a note ends %d bytes behind its section", end-size))
				return
			}
			if !yield(Note{data[at+head : owner], word(2), data[start:end], start}, nil) {
				return
			}
			at = start + pad(end-start)
		}
	}
}
