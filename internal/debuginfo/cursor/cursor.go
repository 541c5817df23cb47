// Package cursor reads the values that DWARF and .eh_frame are made of: integers
// of fixed size in the byte order of the file, LEB128, and strings that end in NUL.
//
// Nothing is read behind the end of the data. The first fault stays in Err, and
// whatever is read after it is 0, so a reader may look for a fault once behind
// several values. A loop has to look in each round.
//
// Sections are cited from DWARF 5.
package cursor

import (
	"bytes"
	"errors"
	"fmt"
)

// The faults of values that are not cut off.
var (
	ErrOverflow = errors.New("a LEB128 of more than 64 bits")
	ErrNoEnd    = errors.New("a string without end")
)

// errEnd is the fault of a byte that is not there. It is made once, so that U8 is
// small enough to be inlined.
var errEnd = errors.New("0x1 bytes, 0x0 are left")

// Cursor is a place in data. Its owner may move At within Data, and shorten Data
// behind At or lengthen it again. It serves one goroutine at a time.
type Cursor struct {
	Data []byte // never written to; what Take and Text return are parts of it
	At   int    // offset of the next value in Data
	Big  bool   // most significant byte first

	err error
}

// Err returns the first fault, nil when there was none. At stays where it was
// met, or a few bytes behind in a LEB128.
func (c *Cursor) Err() error { return c.err }

// Bad reports whether there was a fault.
func (c *Cursor) Bad() bool { return c.err != nil }

// Fail notes a fault that the caller has found, if it is the first.
func (c *Cursor) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// short notes that n bytes are not there.
func (c *Cursor) short(n uint64) {
	if c.err == nil {
		c.err = fmt.Errorf("%#x bytes, %#x are left", n, len(c.Data)-c.At)
	}
}

// Take returns the next n bytes, nil where fewer are left.
func (c *Cursor) Take(n uint64) []byte {
	if c.err != nil || n > uint64(len(c.Data)-c.At) {
		c.short(n)
		return nil
	}
	b := c.Data[c.At:][:n:n]
	c.At += int(n)
	return b
}

// Skip passes over n bytes.
func (c *Cursor) Skip(n uint64) { c.Take(n) }

// U8 reads a byte.
func (c *Cursor) U8() uint8 {
	if c.err != nil {
		return 0
	}
	if c.At >= len(c.Data) {
		c.err = errEnd
		return 0
	}
	c.At++
	return c.Data[c.At-1]
}

// U16 reads an integer of 2 bytes.
func (c *Cursor) U16() uint16 { return uint16(c.number(2)) }

// U32 reads an integer of 4 bytes.
func (c *Cursor) U32() uint32 { return uint32(c.number(4)) }

// U64 reads an integer of 8 bytes.
func (c *Cursor) U64() uint64 { return c.number(8) }

// number reads an integer of n bytes, at most 8.
func (c *Cursor) number(n uint64) (v uint64) {
	for i, b := range c.Take(n) {
		if c.Big {
			v = v<<8 | uint64(b)
		} else {
			v |= uint64(b) << (8 * i)
		}
	}
	return v
}

// Uint reads an integer of n bytes: 1, 2, 4 or 8. Any other n is a fault,
// because it may come from the file.
func (c *Cursor) Uint(n int) uint64 {
	switch n {
	case 1, 2, 4, 8:
		return c.number(uint64(n))
	}
	c.Fail(fmt.Errorf("an integer of %d bytes", n))
	return 0
}

// Word reads an offset: of 4 bytes, or in 64-bit DWARF (section 7.4) of 8.
func (c *Cursor) Word(wide bool) uint64 {
	if wide {
		return c.U64()
	}
	return uint64(c.U32())
}

// Length reads the length in bytes that begins a unit, a table, or an entry of
// .eh_frame, and whether it is the long form of 64-bit DWARF (section 7.4; LSB,
// Core, Generic, 10.6.1). It is not compared with what is left.
func (c *Cursor) Length() (n uint64, wide bool) {
	const reserved, long = 0xfffffff0, 0xffffffff
	if n = uint64(c.U32()); n < reserved {
		return n, false
	}
	if n != long {
		c.Fail(fmt.Errorf("the length %#x, which is reserved", n))
	}
	return c.U64(), true
}

// Uleb reads an unsigned LEB128 (section 7.6). Of one that is longer than 10
// bytes the rest has to be zeros, as padding is: a bit beyond the 64th is a fault.
func (c *Cursor) Uleb() uint64 {
	b := c.U8()
	if b < 0x80 { // nearly all, and what follows a fault
		return uint64(b)
	}
	v := uint64(b & 0x7f)
	for shift := uint(7); b >= 0x80; shift += 7 {
		b = c.U8()
		part := uint64(b & 0x7f)
		if part<<shift>>shift != part {
			c.Fail(ErrOverflow)
		}
		v |= part << shift
		if c.err != nil {
			return 0
		}
	}
	return v
}

// Sleb reads a signed LEB128 (section 7.6). Of one that is longer than 10 bytes
// the rest has to repeat the sign.
func (c *Cursor) Sleb() int64 {
	v, b, shift := int64(0), uint8(0x80), uint(0)
	for ; b >= 0x80; shift += 7 {
		b = c.U8()
		part := int64(b) << 57 >> 57 // its seven bits, the highest of which may be the sign
		if shift == 63 && part != 0 && part != -1 || shift > 63 && part != v>>63 {
			c.Fail(ErrOverflow)
		}
		if c.err != nil {
			return 0
		}
		v |= part & 0x7f << shift
	}
	if b&0x40 != 0 && shift < 64 {
		v |= -1 << shift
	}
	return v
}

// SkipLEB passes over a LEB128 of either kind and any size.
func (c *Cursor) SkipLEB() {
	for c.U8() >= 0x80 {
	}
}

// Text reads a string up to its NUL, and returns it without.
func (c *Cursor) Text() []byte {
	if c.err != nil {
		return nil
	}
	n := bytes.IndexByte(c.Data[c.At:], 0)
	if n < 0 {
		c.Fail(ErrNoEnd)
		return nil
	}
	b := c.Data[c.At:][:n:n]
	c.At += n + 1
	return b
}
