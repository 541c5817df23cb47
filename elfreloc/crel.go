package elfreloc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// SHT_CREL holds relocations as the differences between them, of two to five bytes
// each instead of 24. It is a proposal for the gABI, in which its type has another
// number, and what clang and lld do (clang -Wa,--crel,--allow-experimental-crel).
//
// The section begins with a ULEB128: the count times 8, 4 if entries hold addends,
// and by how many bits offsets are shifted, 0 to 3. Of an entry's first byte the low
// bits tell what differs from the entry before it: 1 the symbol, 2 the type and, where
// entries hold addends, 4 the addend. The bits above, and if its highest is set a
// ULEB128 behind it, are how far the shifted offset has grown. SLEB128 follow: the
// differences that the bits announce. All begin at 0, and wrap: offsets and addends
// at the size of an address, symbols and types at 32 bits.
//
// An entry has no place of its own, so a section is written anew if one changes.

const (
	crelSymbol = 1 << iota
	crelType
	crelAddend // in the header: whether entries hold addends
)

const (
	maxLEB128   = 10 // bytes of 64 bits, without padding
	maxCRELBits = 3  // that offsets are shifted by
)

var errCREL = errors.New("no LEB128 of at most 64 bits")

type crelHeader struct {
	count int
	rela  bool
	shift uint
	size  uint64 // of the header itself, bytes
}

// crelHeader reads the header of an SHT_CREL section. The count is no more than its
// bytes, of which each entry takes one at least.
func (o *Object) crelHeader(sec int) (crelHeader, error) {
	s := &o.Sections[sec]
	b, err := o.Bytes(sec, 0, min(s.Size, maxLEB128))
	if err != nil {
		return crelHeader{}, err
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return crelHeader{}, o.OffsetError(sec, 0, errCREL)
	}
	if left := s.Size - uint64(n); v>>3 > left {
		return crelHeader{}, o.SectionError(sec, fmt.Errorf("%d relocations in %d bytes", v>>3, left))
	}
	return crelHeader{int(v >> 3), v&crelAddend != 0, uint(v & maxCRELBits), uint64(n)}, nil
}

// eachCREL is EachRelocationAgainst of an SHT_CREL section, and count that of symbols.
func (o *Object) eachCREL(rs RelocSection, count int, wanted []bool, f func(i int, r Relocation) error) error {
	h, err := o.crelHeader(rs.Index)
	if err != nil {
		return err
	}
	var c relocationChain
	d := crelDecoder{crelHeader: h, wide: o.Encoding.Word() == 8, entry: Relocation{Implicit: !h.rela}}
	data, err := o.Data(rs.Index)
	if err != nil {
		return err
	}
	at := h.size
	for i := range h.count {
		n := d.next(data[at:])
		if n == 0 {
			return o.OffsetError(rs.Index, at, fmt.Errorf("relocation %d: %w", i, errCREL))
		}
		at += uint64(n)
		r := d.entry
		if r.Sym >= uint32(count) {
			return o.relocSymbolError(rs, i, r.Sym, uint32(count))
		}
		if !c.takes(wanted == nil || wanted[r.Sym], r.Offset) {
			continue
		}
		if err := f(i, r); err != nil {
			return err
		}
	}
	if left := uint64(len(data)) - at; left > 0 {
		return o.OffsetError(rs.Index, at, fmt.Errorf("%d bytes behind the last relocation", left))
	}
	return nil
}

// crelDecoder decodes one entry after the other.
type crelDecoder struct {
	crelHeader
	wide  bool       // addresses are of 64 bits
	entry Relocation // the last
}

// next decodes the entry that b begins with, and returns its length, which is 0 when
// b holds none.
func (d *crelDecoder) next(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	flags, n, good := b[0], 1, true
	grown := uint64(flags&0x7f) >> d.flagBits()
	if flags&0x80 != 0 {
		high, size := binary.Uvarint(b[n:])
		grown |= high << (7 - d.flagBits())
		n, good = n+size, size > 0
	}
	difference := func(flag byte) int64 {
		if flags&flag == 0 || !good {
			return 0
		}
		v, size := sleb128(b[n:])
		n, good = n+size, size > 0
		return v
	}
	r := &d.entry
	r.Offset += grown << d.shift
	r.Sym += uint32(difference(crelSymbol))
	r.Type += uint32(difference(crelType))
	if d.rela {
		r.Addend += difference(crelAddend)
	}
	if !d.wide {
		r.Offset, r.Addend = uint64(uint32(r.Offset)), int64(int32(r.Addend))
	}
	if !good {
		return 0
	}
	return n
}

// crelEncoder appends one entry after the other to data.
type crelEncoder struct {
	crelHeader
	wide  bool
	entry Relocation // the last
	data  []byte
}

// newCREL begins a section of count entries. mask is the offsets of all, by "or": bits
// at its end that no offset has are not stored.
func newCREL(e Encoding, count int, rela bool, mask uint64) *crelEncoder {
	c := &crelEncoder{crelHeader: crelHeader{count: count, rela: rela}, wide: e.Word() == 8}
	c.shift = uint(bits.TrailingZeros64(mask | 1<<maxCRELBits))
	header := uint64(count)<<3 | uint64(c.shift)
	if rela {
		header |= crelAddend
	}
	c.data = binary.AppendUvarint(nil, header)
	return c
}

func (c *crelEncoder) add(r Relocation) {
	grown, addend := r.Offset-c.entry.Offset, r.Addend-c.entry.Addend
	if !c.wide {
		grown, addend = uint64(uint32(grown)), int64(int32(addend))
	}
	grown >>= c.shift
	flags := byte(0)
	if r.Sym != c.entry.Sym {
		flags |= crelSymbol
	}
	if r.Type != c.entry.Type {
		flags |= crelType
	}
	if c.rela && addend != 0 {
		flags |= crelAddend
	}
	if first := 7 - c.flagBits(); grown>>first == 0 {
		c.data = append(c.data, byte(grown)<<c.flagBits()|flags)
	} else {
		c.data = append(c.data, byte(grown)<<c.flagBits()&0x7f|flags|0x80)
		c.data = binary.AppendUvarint(c.data, grown>>first)
	}
	if flags&crelSymbol != 0 {
		c.data = appendSLEB128(c.data, int64(int32(r.Sym-c.entry.Sym)))
	}
	if flags&crelType != 0 {
		c.data = appendSLEB128(c.data, int64(int32(r.Type-c.entry.Type)))
	}
	if flags&crelAddend != 0 {
		c.data = appendSLEB128(c.data, addend)
	}
	c.entry = r
}

func (h crelHeader) flagBits() int {
	if h.rela {
		return 3
	}
	return 2
}

func (o *Object) relocSymbolError(rs RelocSection, i int, sym, count uint32) error {
	return o.SectionError(rs.Index, fmt.Errorf("relocation %d: symbol %d of %d", i, sym, count))
}

func (c *relocationChain) takes(match bool, off uint64) bool {
	c.open = match || c.open && off == c.place
	c.place = off
	return c.open
}

// sleb128 returns a signed value and its length, which is 0 when b holds none of
// at most 64 bits in at most ten bytes.
func sleb128(b []byte) (v int64, n int) {
	for shift := 0; n < len(b) && shift < 70; shift += 7 {
		septet := int64(b[n]) << 57 >> 57 // its seven bits, the highest of which may be the sign
		if shift == 63 && septet != 0 && septet != -1 {
			return 0, 0
		}
		v |= septet & 0x7f << shift
		n++
		if b[n-1]&0x80 == 0 {
			if shift < 63 && septet < 0 {
				v |= -1 << (shift + 7)
			}
			return v, n
		}
	}
	return 0, 0
}

func appendSLEB128(b []byte, v int64) []byte {
	for v < -0x40 || v >= 0x40 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}
