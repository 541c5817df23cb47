package amd64

import "math/bits"

// bitmap is a set of the offsets of a section.
type bitmap struct {
	words []uint64
	size  uint64 // of the section; what is not below is never in the set
}

func newBitmap(size uint64) bitmap { return bitmap{make([]uint64, (size+63)/64), size} }

func (b bitmap) add(off uint64) {
	if off < b.size {
		b.words[off/64] |= 1 << (off % 64)
	}
}

// addAll adds the offsets from one up to another.
func (b bitmap) addAll(from, to uint64) {
	for ; from < min(to, b.size); from++ {
		b.add(from)
	}
}

func (b bitmap) has(off uint64) bool { return off < b.size && b.words[off/64]>>(off%64)&1 != 0 }

// any reports whether there is an offset from one up to another.
func (b bitmap) any(from, to uint64) bool {
	for to = min(to, b.size); from < to; {
		word := b.words[from/64] >> (from % 64)
		if word != 0 {
			return from+uint64(bits.TrailingZeros64(word)) < to
		}
		from += 64 - from%64
	}
	return false
}
