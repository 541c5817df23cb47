package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"

	"sdtconvert/internal/input"
)

// Most inputs of a link hold no probes. Of one in the usual shape, a 64-bit
// little-endian object, that is found out here from its section headers and the names
// of its symbols, without a place in memory for anything: over thousands of objects
// that takes half the time of reading them as objects. Whatever is not as expected is
// left to who does.

// Offsets in a 64-bit ELF header and section header, in bytes (gABI, chapter 4).
const (
	ehdrType, ehdrShOff, ehdrShEntSize, ehdrShNum, ehdrSize        = 16, 40, 58, 60, 64
	shdrType, shdrFlags, shdrOffset, shdrBytes, shdrLink, shdrSize = 4, 8, 24, 32, 40, 64
)

// withoutNames reports whether a file is surely an object, or what was linked, in
// whose symbols none of the needles occurs, and that holds no code to be generated.
func withoutNames(f *input.File, needles [][]byte) (typ elf.Type, sure bool) {
	h := f.Slice(0, min(f.Size(), ehdrSize))
	if len(h) < ehdrSize || h[elf.EI_CLASS] != byte(elf.ELFCLASS64) || h[elf.EI_DATA] != byte(elf.ELFDATA2LSB) || h[elf.EI_VERSION] != byte(elf.EV_CURRENT) {
		return 0, false
	}
	le := binary.LittleEndian
	if typ = elf.Type(le.Uint16(h[ehdrType:])); typ == elf.ET_DYN {
		return typ, true
	}
	off, num := le.Uint64(h[ehdrShOff:]), int64(le.Uint16(h[ehdrShNum:]))
	if typ != elf.ET_REL || int64(le.Uint16(h[ehdrShEntSize:])) != shdrSize || num == 0 {
		return 0, false
	}
	headers := within(f, off, uint64(num*shdrSize))
	if headers == nil {
		return 0, false
	}
	names := []byte(nil)
	for s := headers; len(s) > 0; s = s[shdrSize:] {
		switch typ, flags := elf.SectionType(le.Uint32(s[shdrType:])), le.Uint64(s[shdrFlags:]); {
		case typ == elf.SHT_SYMTAB:
			link := int64(le.Uint32(s[shdrLink:]))
			if names != nil || link == 0 || link >= num {
				return 0, false
			}
			table := headers[link*shdrSize:]
			if names = within(f, le.Uint64(table[shdrOffset:]), le.Uint64(table[shdrBytes:])); names == nil {
				return 0, false
			}
		case flags&shfExclude != 0 && typ != shtAddrsig:
			return 0, false // code for link-time optimisation is in such sections
		}
	}
	return typ, !slices.ContainsFunc(needles, func(needle []byte) bool { return bytes.Contains(names, needle) })
}

const (
	shfExclude = 0x80000000
	shtAddrsig = 0x6fff4c03 // LLVM's .llvm_addrsig, in every object of clang
)

// within returns bytes of the file, or nil if it does not hold them, or memory has no
// room.
func within(f *input.File, off, n uint64) []byte {
	if n == 0 || off > uint64(f.Size()) || n > uint64(f.Size())-off {
		return nil
	}
	return f.Slice(int64(off), int64(n))
}
