package resolve

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/cursor"
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

// reader reads what .eh_frame and .eh_frame_hdr are made of.
type reader struct {
	cursor.Cursor
	addr   uint64 // of Data[0] once it is loaded
	layout elfreloc.Encoding
}

func newReader(data []byte, addr uint64, l elfreloc.Encoding) reader {
	return reader{cursor.Cursor{Data: data, Big: l.Order == binary.ByteOrder(binary.BigEndian)}, addr, l}
}

func (r *reader) fail(format string, args ...any) { r.Fail(fmt.Errorf(format, args...)) }

// entry takes what the length of a CIE or FDE covers (LSB, 10.6.1).
func (r *reader) entry() reader {
	length, _ := r.Length()
	start := r.At
	r.Skip(length)
	body := *r // with the fault, if there was one
	body.Data, body.At = r.Data[:r.At], start
	return body
}

// format is how a pointer is stored.
type format struct {
	known  bool
	size   int // bytes, 0 for a word
	signed bool
}

// formats are those of DW_EH_PE_absptr, udata2, udata4, udata8, signed and
// sdata2, sdata4, sdata8. No compiler uses LEB128 for addresses.
var formats = [formatMask + 1]format{
	0x0: {true, 0, false}, 0x2: {true, 2, false}, 0x3: {true, 4, false}, 0x4: {true, 8, false},
	0x8: {true, 0, true}, 0xa: {true, 2, true}, 0xb: {true, 4, true}, 0xc: {true, 8, true},
}

// formatOf returns the format of an encoding that an address of code may have.
func (r *reader) formatOf(encoding byte) format {
	f := formats[encoding&formatMask]
	if base := encoding &^ formatMask; !f.known || base != 0 && base != relative {
		r.fail("pointer encoding %#x", encoding)
	}
	return f
}

// pointer reads an address.
func (r *reader) pointer(encoding byte) uint64 {
	f := r.formatOf(encoding)
	field := r.addr + uint64(r.At)
	v := r.Uint(r.width(f))
	if f.signed {
		shift := 64 - 8*r.width(f)
		v = uint64(int64(v<<shift) >> shift)
	}
	if encoding&relative != 0 {
		v += field
	}
	if r.layout.Class == elf.ELFCLASS32 {
		v = uint64(uint32(v))
	}
	return v
}

// width returns the size of a format in bytes.
func (r *reader) width(f format) int {
	if f.size == 0 {
		return r.layout.Word()
	}
	return f.size
}

// skipPointer passes over an address of any encoding.
func (r *reader) skipPointer(encoding byte) {
	if encoding == omitted {
		return
	}
	if encoding&applied == aligned {
		word := uint64(r.layout.Word())
		at := r.addr + uint64(r.At)
		r.Skip((at+word-1)&^(word-1) - at)
	}
	f := formats[encoding&formatMask]
	if !f.known {
		r.fail("pointer encoding %#x", encoding)
	}
	r.Skip(uint64(r.width(f)))
}
