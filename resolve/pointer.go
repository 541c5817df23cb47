package resolve

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math"

	"sdtconvert/elfreloc"
)

// Encodings of pointers, DW_EH_PE_* (LSB, 10.5.1): a format in the low bits, and
// what the value is added to.
const (
	formatMask = 0x0f
	relative   = 0x10 // DW_EH_PE_pcrel: to the field itself
	applied    = 0x70
	aligned    = 0x50 // DW_EH_PE_aligned: at a multiple of the word's size
	omitted    = 0xff
)

// cursor reads fields one after another. The first error stays in err, and
// everything read after it is zero.
type cursor struct {
	data   []byte
	off    int
	addr   uint64 // of data[0] once it is loaded
	layout elfreloc.Layout
	err    error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.off = len(c.data)
}

// bytes takes the next n bytes.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.data)-c.off) {
		c.fail("%#x bytes, %#x are left", n, len(c.data)-c.off)
		return nil
	}
	b := c.data[c.off:][:n:n]
	c.off += int(n)
	return b
}

// entry takes what the length of a CIE or FDE covers: 4 bytes, or 0xffffffff and
// 8 bytes (LSB, 10.6.1).
func (c *cursor) entry() cursor {
	length := c.unsigned(4)
	if length == math.MaxUint32 {
		length = c.unsigned(8)
	}
	start := c.off
	c.bytes(length)
	return cursor{data: c.data[:c.off], off: start, addr: c.addr, layout: c.layout, err: c.err}
}

func (c *cursor) unsigned(n uint64) uint64 {
	b := c.bytes(n)
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(c.layout.Order.Uint16(b))
	case 4:
		return uint64(c.layout.Order.Uint32(b))
	case 8:
		return c.layout.Order.Uint64(b)
	}
	return 0
}

// leb reads an unsigned LEB128 (DWARF 5, 7.6).
func (c *cursor) leb() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := c.unsigned(1)
		if shift > 63 || shift == 63 && b > 1 {
			c.fail("a LEB128 of more than 64 bits")
			return 0
		}
		v |= b & 0x7f << shift
		if b&0x80 == 0 {
			return v
		}
	}
}

// skipLEB passes over a LEB128 of any size and sign.
func (c *cursor) skipLEB() {
	for c.unsigned(1)&0x80 != 0 {
	}
}

// text reads a string up to its NUL.
func (c *cursor) text() string {
	end := bytes.IndexByte(c.data[c.off:], 0)
	if end < 0 {
		c.fail("a string without end")
		return ""
	}
	s := c.bytes(uint64(end) + 1)
	return string(s[:end])
}

// format is how a pointer is stored.
type format struct {
	known  bool
	size   uint64 // bytes, 0 for a word
	signed bool
}

// formats are those of DW_EH_PE_absptr, udata2, udata4, udata8, signed and
// sdata2, sdata4, sdata8. No compiler uses LEB128 for addresses.
var formats = [formatMask + 1]format{
	0x0: {true, 0, false}, 0x2: {true, 2, false}, 0x3: {true, 4, false}, 0x4: {true, 8, false},
	0x8: {true, 0, true}, 0xa: {true, 2, true}, 0xb: {true, 4, true}, 0xc: {true, 8, true},
}

// formatOf returns the format of an encoding that an address of code may have.
func (c *cursor) formatOf(encoding byte) format {
	f := formats[encoding&formatMask]
	if base := encoding &^ formatMask; !f.known || base != 0 && base != relative {
		c.fail("pointer encoding %#x", encoding)
	}
	return f
}

// pointer reads an address.
func (c *cursor) pointer(encoding byte) uint64 {
	f := c.formatOf(encoding)
	field := c.addr + uint64(c.off)
	v := c.unsigned(c.width(f))
	if f.signed {
		shift := 64 - 8*c.width(f)
		v = uint64(int64(v<<shift) >> shift)
	}
	if encoding&relative != 0 {
		v += field
	}
	if c.layout.Class == elf.ELFCLASS32 {
		v = uint64(uint32(v))
	}
	return v
}

// width is the size of a format in bytes.
func (c *cursor) width(f format) uint64 {
	if f.size == 0 {
		return uint64(c.layout.Word())
	}
	return f.size
}

// skipPointer passes over an address of any encoding.
func (c *cursor) skipPointer(encoding byte) {
	if encoding == omitted {
		return
	}
	if encoding&applied == aligned {
		word := uint64(c.layout.Word())
		at := c.addr + uint64(c.off)
		c.bytes((at+word-1)&^(word-1) - at)
	}
	f := formats[encoding&formatMask]
	if !f.known {
		c.fail("pointer encoding %#x", encoding)
	}
	c.bytes(c.width(f))
}
