package debuginfo

// The format of .eh_frame is that of the LSB, "Exception Frames" (Core, Generic, 10.6), which
// is DWARF's .debug_frame with pointers of several encodings.

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"iter"

	"sdtconvert/elfreloc"
)

// UnwindFunction is what an FDE, an entry of .eh_frame, says of a function.
type UnwindFunction struct {
	Offset      int // of the entry in the section
	Start, Size uint64

	common *unwindCommon
}

// unwindCommon is what a Common Information Entry says of the FDEs that refer to it.
type unwindCommon struct {
	encoding byte // of addresses
	sized    bool // whether augmentation data with its length follows
}

// UnwindFunctions reads .eh_frame, which is loaded at addr. A length of zero ends it
// for an unwinder, which stop asks for; a section may hold more behind it, if the file that ends the
// list was not linked last. An error ends it, and comes with the offset of its entry.
func UnwindFunctions(data []byte, addr uint64, l elfreloc.Encoding, stop bool) iter.Seq2[UnwindFunction, error] {
	return func(yield func(UnwindFunction, error) bool) {
		cies := make(map[int]*unwindCommon)
		r := newUnwindReader(data, addr, l)
		for r.at < len(data) {
			f := UnwindFunction{Offset: r.at}
			body := r.entry()
			if !body.bad() && body.at == len(body.data) {
				if stop {
					return
				}
				continue
			}
			at, isFunction := body.at, false
			if id := int(body.u32()); id == 0 && !body.bad() {
				cies[f.Offset] = body.cie()
			} else if f.common = cies[at-id]; f.common != nil { // the distance from the field itself
				body.fde(&f)
				isFunction = true
			} else {
				body.fail("no CIE %#x bytes before the pointer to it", id)
			}
			if err := body.fault(); err != nil {
				yield(f, err)
				return
			}
			if isFunction && !yield(f, nil) {
				return
			}
		}
	}
}

// EhFrame returns the address of .eh_frame by the contents of .eh_frame_hdr, which is loaded at addr.
func EhFrame(header []byte, addr uint64, l elfreloc.Encoding) (uint64, error) {
	r := newUnwindReader(header, addr, l)
	r.skip(4) // the version and three encodings
	table := r.pointer(header[1])
	return table, r.fault()
}

// cie reads a CIE behind its ID.
func (r *unwindReader) cie() *unwindCommon {
	parsed := &unwindCommon{}
	version := r.u8()
	if version != 1 && version != 3 {
		r.fail("CIE of version %d", version)
	}
	augmentation := string(r.text())
	r.skipLEB() // the factors of alignment
	r.skipLEB()
	if version == 1 {
		r.u8()
	} else {
		r.skipLEB() // the column of the return address
	}
	if augmentation == "" {
		return parsed
	}
	if augmentation[0] != 'z' {
		r.fail("CIE of augmentation %q", augmentation)
	}
	parsed.sized = true
	n := r.uleb()
	data := r.take(n)
	if r.bad() {
		return parsed
	}
	r.data, r.at = r.data[:r.at], r.at-len(data)
	for _, letter := range augmentation[1:] {
		r.augmentation(letter, parsed)
	}
	return parsed
}

// augmentation reads what a letter of the augmentation stands for.
func (r *unwindReader) augmentation(letter rune, parsed *unwindCommon) {
	switch letter {
	case 'S', 'B', 'G': // a signal's frame; arm64's B key, and tagged frames
	case 'L': // the encoding of the address of a function's data
		r.u8()
	case 'R': // the encoding of addresses of code
		parsed.encoding = r.u8()
		r.formatOf(parsed.encoding)
	case 'P': // the personality routine
		r.skipPointer(r.u8())
	default:
		r.fail("CIE of augmentation %q", letter)
	}
}

// fde reads an FDE behind the pointer to its CIE.
func (r *unwindReader) fde(f *UnwindFunction) {
	f.Start = r.pointer(f.common.encoding)
	f.Size = r.pointer(f.common.encoding & formatMask)
	if f.common.sized {
		r.skip(r.uleb())
	}
}

// Encodings of pointers, DW_EH_PE_* (LSB, 10.5.1): a format in the low bits, and
// what the value is added to.
const (
	formatMask = 0x0f
	relative   = 0x10 // DW_EH_PE_pcrel: to the field itself
	applied    = 0x70
	aligned    = 0x50 // DW_EH_PE_aligned: at a multiple of the word's size
	omitted    = 0xff
)

// unwindReader reads what .eh_frame and .eh_frame_hdr are made of.
type unwindReader struct {
	cursor
	addr   uint64 // of Data[0] once it is loaded
	layout elfreloc.Encoding
}

func newUnwindReader(data []byte, addr uint64, l elfreloc.Encoding) unwindReader {
	return unwindReader{cursor{data: data, big: l.Order == binary.ByteOrder(binary.BigEndian)}, addr, l}
}

func (r *unwindReader) fail(format string, args ...any) { r.cursor.fail(fmt.Errorf(format, args...)) }

// entry takes what the length of a CIE or FDE covers (LSB, 10.6.1).
func (r *unwindReader) entry() unwindReader {
	length, _ := r.length()
	start := r.at
	r.skip(length)
	body := *r // with the fault, if there was one
	body.data, body.at = r.data[:r.at], start
	return body
}

// format is how a pointer is stored.
type format struct {
	isSupported bool
	size        int // bytes, 0 for a word
	signed      bool
}

// formats are those of DW_EH_PE_absptr, udata2, udata4, udata8, signed and
// sdata2, sdata4, sdata8. No compiler uses LEB128 for addresses.
var formats = [formatMask + 1]format{
	0x0: {true, 0, false}, 0x2: {true, 2, false}, 0x3: {true, 4, false}, 0x4: {true, 8, false},
	0x8: {true, 0, true}, 0xa: {true, 2, true}, 0xb: {true, 4, true}, 0xc: {true, 8, true},
}

// formatOf returns the format of an encoding that an address of code may have.
func (r *unwindReader) formatOf(encoding byte) format {
	f := formats[encoding&formatMask]
	if base := encoding &^ formatMask; !f.isSupported || base != 0 && base != relative {
		r.fail("pointer encoding %#x", encoding)
	}
	return f
}

// pointer reads an address.
func (r *unwindReader) pointer(encoding byte) uint64 {
	f := r.formatOf(encoding)
	field := r.addr + uint64(r.at)
	v := r.uint(r.width(f))
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
func (r *unwindReader) width(f format) int {
	if f.size == 0 {
		return r.layout.Word()
	}
	return f.size
}

// skipPointer passes over an address of any encoding.
func (r *unwindReader) skipPointer(encoding byte) {
	if encoding == omitted {
		return
	}
	if encoding&applied == aligned {
		word := uint64(r.layout.Word())
		at := r.addr + uint64(r.at)
		r.skip((at+word-1)&^(word-1) - at)
	}
	f := formats[encoding&formatMask]
	if !f.isSupported {
		r.fail("pointer encoding %#x", encoding)
	}
	r.skip(uint64(r.width(f)))
}
