package arm64

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// test makes an is-enabled site go to the helper that loads the semaphore, as it went to
// the stub: the load takes two instructions.
func test(s arch.Site) arch.Change {
	c := arch.Change{Site: s, New: bytes.Clone(b), RecordedOffset: s.Offset, Target: arch.TargetTestHelper}
	c.Reloc = elfreloc.Relocation{Offset: s.Offset, Type: uint32(elf.R_AARCH64_JUMP26)}
	if s.Form == arch.Call {
		c.New, c.Reloc.Type = bytes.Clone(bl), uint32(elf.R_AARCH64_CALL26)
	}
	return c
}

// isLink reports whether code is a bl to anywhere.
func isLink(code []byte) bool { return code[3]>>2 == opBL>>26 }

// The helper, by its assembly. The addresses are filled in by the linker.
var (
	bl   = []byte{0x00, 0x00, 0x00, 0x94} // bl helper
	btiC = []byte{0x5f, 0x24, 0x03, 0xd5} // bti c
	adrp = []byte{0x00, 0x00, 0x00, 0x90} // adrp x0, semaphore
	ldrh = []byte{0x00, 0x00, 0x40, 0x79} // ldrh w0, [x0, :lo12:semaphore]
)

// LoadedSemaphore reads the helper. Linkers that work around an erratum make adr of adrp.
func (Machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	if bytes.Equal(t.At(at, insnLen), btiC) {
		at += insnLen
	}
	code := t.At(at, 3*insnLen)
	if code == nil || !bytes.Equal(code[2*insnLen:], ret) {
		return 0, false
	}
	first, load := binary.LittleEndian.Uint32(code), binary.LittleEndian.Uint32(code[insnLen:])
	if load&0xffc003ff != binary.LittleEndian.Uint32(ldrh) {
		return 0, false
	}
	low := uint64(load>>10&0xfff) * 2
	imm := uint64(int64(int32(first<<8)>>13)<<2 | int64(first>>29&3)) // immhi:immlo, signed
	switch first & 0x9f00001f {
	case 0x90000000: // adrp x0
		return at&^0xfff + imm<<12 + low, true
	case 0x10000000: // adr x0
		return at + imm + low, true
	}
	return 0, false
}
