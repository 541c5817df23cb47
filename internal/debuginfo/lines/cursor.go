package lines

import (
	"bytes"
	"encoding/binary"
)

// cursor reads the values of DWARF from bytes. What is read behind their end is
// 0, and bad from then on.
type cursor struct {
	b   []byte
	at  int
	big bool // byte order
	bad bool
}

// take returns the next n bytes, or nil.
func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)-c.at) {
		c.bad = true
		return nil
	}
	b := c.b[c.at:][:n:n]
	c.at += int(n)
	return b
}

func (c *cursor) skip(n uint64) { c.take(n) }

func (c *cursor) u8() uint8 {
	if c.bad || c.at >= len(c.b) {
		c.bad = true
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

func (c *cursor) u16() uint16 {
	b := c.take(2)
	switch {
	case b == nil:
		return 0
	case c.big:
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (c *cursor) u32() uint32 {
	b := c.take(4)
	switch {
	case b == nil:
		return 0
	case c.big:
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *cursor) u64() uint64 {
	b := c.take(8)
	switch {
	case b == nil:
		return 0
	case c.big:
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// uint reads an integer of n bytes: 1, 2, 3, 4 or 8.
func (c *cursor) uint(n int) uint64 {
	switch n {
	case 1:
		return uint64(c.u8())
	case 2:
		return uint64(c.u16())
	case 3:
		b := c.take(3)
		switch {
		case b == nil:
			return 0
		case c.big:
			return uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2])
		}
		return uint64(b[2])<<16 | uint64(b[1])<<8 | uint64(b[0])
	case 4:
		return uint64(c.u32())
	case 8:
		return c.u64()
	}
	c.bad = true
	return 0
}

// word reads an offset: of 4 bytes, or in 64-bit DWARF (section 7.4) of 8.
func (c *cursor) word(wide bool) uint64 {
	if wide {
		return c.u64()
	}
	return uint64(c.u32())
}

// length reads the length that starts a unit or table, and whether it is one of
// 64-bit DWARF.
func (c *cursor) length() (n uint64, wide bool) {
	if n = uint64(c.u32()); n < 0xfffffff0 {
		return n, false
	}
	if n != 0xffffffff {
		c.bad = true // reserved
	}
	return c.u64(), true
}

// uleb reads a LEB128 (section 7.6). What does not fit 64 bits is cut off.
func (c *cursor) uleb() uint64 {
	v := uint64(0)
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

func (c *cursor) sleb() int64 {
	v := int64(0)
	for shift := uint(0); ; {
		b := c.u8()
		v |= int64(b&0x7f) << shift
		shift += 7
		if b < 0x80 {
			if b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

func (c *cursor) text() []byte {
	if c.bad {
		return nil
	}
	n := bytes.IndexByte(c.b[c.at:], 0)
	if n < 0 {
		c.bad = true
		return nil
	}
	b := c.b[c.at:][:n]
	c.at += n + 1
	return b
}
