package lto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"sdtconvert/elfreloc"
)

// Symbol is a global symbol of intermediate code.
type Symbol struct {
	Name    string
	Defined bool
}

// ltoTable begins the name of the sections in which GCC keeps the symbols of its
// intermediate code for plugins of linkers.
const ltoTable = ".gnu.lto_.symtab"

// Symbols returns the symbols of the intermediate code in an object.
func Symbols(o *elfreloc.Object) ([]Symbol, error) {
	var symbols []Symbol
	for i := range o.Sections {
		sec := &o.Sections[i]
		if !strings.HasPrefix(sec.Name, ltoTable) && sec.Name != ".llvm.lto" {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		read := gccSymbols
		if sec.Name == ".llvm.lto" {
			read = BitcodeSymbols
		}
		table, err := read(data)
		if err != nil {
			return nil, o.SectionError(i, err)
		}
		symbols = append(symbols, table...)
	}
	return symbols, nil
}

// gccSymbols reads a table of GCC (lto-streamer-out.cc, write_symbol): for each symbol its
// name and the name of its COMDAT group, each with a zero byte behind, a byte of its kind, of
// its visibility, eight of its size, and four of its place.
func gccSymbols(table []byte) (symbols []Symbol, err error) {
	const fixed = 1 + 1 + 8 + 4
	for len(table) > 0 {
		name, fields, ok := bytes.Cut(table, []byte{0})
		_, fields, group := bytes.Cut(fields, []byte{0})
		if !ok || !group || len(fields) < fixed {
			return nil, fmt.Errorf("its table of symbols is cut off")
		}
		const undefined, weakUndefined = 2, 3 // GCCPK_UNDEF, GCCPK_WEAKUNDEF
		symbols = append(symbols, Symbol{string(name), fields[0] != undefined && fields[0] != weakUndefined})
		table = fields[fixed:]
	}
	return symbols, nil
}

// LLVM bitcode (llvm.org/docs/BitCodeFormat.html) is a stream of bits with blocks. Behind the
// modules are a block with a table of symbols, made for linkers
// (llvm/include/llvm/Object/IRSymtab.h), and one with the strings that the table refers to.
const (
	symbolTableBlock = 25
	stringTableBlock = 23
)

var errBitcode = errors.New("LLVM bitcode whose table of symbols is not understood")

// BitcodeSymbols reads the symbols of bitcode.
func BitcodeSymbols(code []byte) ([]Symbol, error) {
	if w := binary.LittleEndian; len(code) >= 20 && w.Uint32(code) == 0x0B17C0DE { // a wrapper: offset and size
		offset, size := uint64(w.Uint32(code[8:])), uint64(w.Uint32(code[12:]))
		if offset+size > uint64(len(code)) {
			return nil, errBitcode
		}
		code = code[offset : offset+size]
	}
	if !bytes.HasPrefix(code, []byte("BC\xc0\xde")) {
		return nil, errBitcode
	}
	r := bitReader{data: code, at: 32}
	blobs := map[uint64][]byte{}
	for !r.failed && r.at+32 <= 8*uint64(len(code)) {
		if r.fixed(2) != 1 { // ENTER_SUBBLOCK
			return nil, errBitcode
		}
		block, width := r.variable(8), r.variable(4)
		r.align()
		words := r.fixed(32)
		end := r.at + 32*words
		if block == symbolTableBlock || block == stringTableBlock {
			blobs[block] = r.blob(uint(width))
		}
		r.at = end
	}
	if r.failed || blobs[symbolTableBlock] == nil {
		return nil, errBitcode
	}
	return irSymbols(blobs[symbolTableBlock], blobs[stringTableBlock])
}

// irSymbols reads the table: a header of words, the fourth pair of which tells where the symbols
// are and how many, of six words each.
func irSymbols(table, names []byte) (list []Symbol, err error) {
	const (
		// Behind the version, and pairs of the producer, the modules and the COMDAT groups.
		symbols    = 4 * (1 + 2 + 2 + 2)
		symbolSize = 4 * 6
		flags      = 4 * 5
		undefined  = 1 << 3 // FB_undefined
	)
	w := binary.LittleEndian
	if len(table) < symbols+8 {
		return nil, errBitcode
	}
	start, count := uint64(w.Uint32(table[symbols:])), uint64(w.Uint32(table[symbols+4:]))
	if start+count*symbolSize > uint64(len(table)) {
		return nil, errBitcode
	}
	for ; count > 0; count-- {
		row := table[start : start+symbolSize]
		at, size := uint64(w.Uint32(row)), uint64(w.Uint32(row[4:]))
		if at+size > uint64(len(names)) {
			return nil, errBitcode
		}
		list = append(list, Symbol{string(names[at : at+size]), w.Uint32(row[flags:])&undefined == 0})
		start += symbolSize
	}
	return list, nil
}

// bitReader reads a stream of bits, the lowest of each byte first.
type bitReader struct {
	data   []byte
	at     uint64 // bits
	failed bool   // the stream has ended too early
}

// fixed reads a number of so many bits, at most 32.
func (r *bitReader) fixed(width uint) (n uint64) {
	if r.at+uint64(width) > 8*uint64(len(r.data)) {
		r.failed = true
		return 0
	}
	for i := range width {
		n |= uint64(r.data[r.at/8]>>(r.at%8)&1) << i
		r.at++
	}
	return n
}

// variable reads a number in pieces of so many bits, the highest of which says that there are
// more.
func (r *bitReader) variable(width uint) (n uint64) {
	for shift := uint(0); !r.failed && shift < 64; shift += width - 1 {
		piece := r.fixed(width)
		n |= piece & (1<<(width-1) - 1) << shift
		if piece>>(width-1) == 0 {
			break
		}
	}
	return n
}

func (r *bitReader) align() { r.at = (r.at + 31) &^ 31 }

// blob reads a block that has the definition of one abbreviation, and one record by it: a code and
// a blob.
func (r *bitReader) blob(width uint) []byte {
	if width == 0 || width > 32 {
		return nil
	}
	if r.fixed(width) != 2 { // DEFINE_ABBREV
		return nil
	}
	literal := false
	for operands := r.variable(5); operands > 0 && !r.failed; operands-- {
		if r.fixed(1) == 1 {
			r.variable(8)
			literal = true
		} else if encoding := r.fixed(3); encoding == 1 || encoding == 2 {
			r.variable(5)
		}
	}
	if r.fixed(width) != 4 || !literal { // the abbreviation
		return nil
	}
	size := r.variable(6)
	r.align()
	start := r.at / 8
	if r.failed || size > uint64(len(r.data)) || start+size > uint64(len(r.data)) {
		return nil
	}
	return r.data[start : start+size]
}
