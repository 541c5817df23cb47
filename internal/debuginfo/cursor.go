package debuginfo

import (
	"bytes"
	"errors"
	"fmt"
)

// The faults of values that are not cut off.
var (
	errOverflow = errors.New("a LEB128 of more than 64 bits")
	errNoEnd    = errors.New("a string without end")
)

// errEnd is the fault of a byte that is not there. It is made once, so that u8 is
// small enough to be inlined.
var errEnd = errors.New("0x1 bytes, 0x0 are left")

// cursor reads the values that DWARF and .eh_frame are made of: integers
// of fixed size in the byte order of the file, LEB128, and strings that end in NUL.
//
// Nothing is read behind the end of the data. The first fault stays in err, and
// whatever is read after it is 0, so a reader may look for a fault once behind
// several values. A loop has to look in each round.
//
// Its owner may move at within data, and shorten data behind at or lengthen it again. It serves one
// goroutine at a time.
type cursor struct {
	data []byte // never written to; what take and text return are parts of it
	at   int    // offset of the next value in data
	big  bool   // most significant byte first

	err error
}

// fault returns the first fault, nil when there was none. at stays where it was
// met, or a few bytes behind in a LEB128.
func (c *cursor) fault() error { return c.err }

// bad reports whether there was a fault.
func (c *cursor) bad() bool { return c.err != nil }

// fail notes a fault that the caller has found, if it is the first.
func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// take returns the next n bytes, nil where fewer are left.
func (c *cursor) take(n uint64) []byte {
	if c.err != nil || n > uint64(len(c.data)-c.at) {
		if c.err == nil {
			c.err = fmt.Errorf("%#x bytes, %#x are left", n, len(c.data)-c.at)
		}
		return nil
	}
	b := c.data[c.at:][:n:n]
	c.at += int(n)
	return b
}

// skip passes over n bytes.
func (c *cursor) skip(n uint64) { c.take(n) }

// u8 reads a byte.
func (c *cursor) u8() uint8 {
	if c.err != nil {
		return 0
	}
	if c.at >= len(c.data) {
		c.err = errEnd
		return 0
	}
	c.at++
	return c.data[c.at-1]
}

// u16 reads an integer of 2 bytes.
func (c *cursor) u16() uint16 { return uint16(c.number(2)) }

// u32 reads an integer of 4 bytes.
func (c *cursor) u32() uint32 { return uint32(c.number(4)) }

// u64 reads an integer of 8 bytes.
func (c *cursor) u64() uint64 { return c.number(8) }

// number reads an integer of n bytes, at most 8.
func (c *cursor) number(n uint64) (v uint64) {
	for i, b := range c.take(n) {
		if c.big {
			v = v<<8 | uint64(b)
		} else {
			v |= uint64(b) << (8 * i)
		}
	}
	return v
}

// uint reads an integer of n bytes: 1, 2, 4 or 8. Any other n is a fault,
// because it may come from the file.
func (c *cursor) uint(n int) uint64 {
	switch n {
	case 1, 2, 4, 8:
		return c.number(uint64(n))
	}
	c.fail(fmt.Errorf("an integer of %d bytes", n))
	return 0
}

// word reads an offset: of 4 bytes, or in 64-bit DWARF (section 7.4) of 8.
func (c *cursor) word(wide bool) uint64 {
	if wide {
		return c.u64()
	}
	return uint64(c.u32())
}

// length reads the length in bytes that begins a unit, a table, or an entry of
// .eh_frame, and whether it is the long form of 64-bit DWARF (section 7.4; LSB,
// Core, Generic, 10.6.1). It is not compared with what is left.
func (c *cursor) length() (n uint64, wide bool) {
	const reserved, long = 0xfffffff0, 0xffffffff
	if n = uint64(c.u32()); n < reserved {
		return n, false
	}
	if n != long {
		c.fail(fmt.Errorf("the length %#x, which is reserved", n))
	}
	return c.u64(), true
}

// uleb reads an unsigned LEB128 (section 7.6). Of one that is longer than 10
// bytes the rest has to be zeros, as padding is: a bit beyond the 64th is a fault.
func (c *cursor) uleb() uint64 {
	b := c.u8()
	if b < 0x80 { // nearly all, and what follows a fault
		return uint64(b)
	}
	v := uint64(b & 0x7f)
	for shift := uint(7); b >= 0x80; shift += 7 {
		b = c.u8()
		part := uint64(b & 0x7f)
		if part<<shift>>shift != part {
			c.fail(errOverflow)
		}
		v |= part << shift
		if c.err != nil {
			return 0
		}
	}
	return v
}

// sleb reads a signed LEB128 (section 7.6). Of one that is longer than 10 bytes
// the rest has to repeat the sign.
func (c *cursor) sleb() int64 {
	v, b, shift := int64(0), uint8(0x80), uint(0)
	for ; b >= 0x80; shift += 7 {
		b = c.u8()
		part := int64(b) << 57 >> 57 // its seven bits, the highest of which may be the sign
		if shift == 63 && part != 0 && part != -1 || shift > 63 && part != v>>63 {
			c.fail(errOverflow)
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

// skipLEB passes over a LEB128 of either kind and any size.
func (c *cursor) skipLEB() {
	for c.u8() >= 0x80 {
	}
}

// text reads a string up to its NUL, and returns it without.
func (c *cursor) text() []byte {
	if c.err != nil {
		return nil
	}
	n := bytes.IndexByte(c.data[c.at:], 0)
	if n < 0 {
		c.fail(errNoEnd)
		return nil
	}
	b := c.data[c.at:][:n:n]
	c.at += n + 1
	return b
}
