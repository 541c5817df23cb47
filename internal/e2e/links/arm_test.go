package links

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
)

// TestArm links both instruction sets with compilers that begin in the other one.
func TestArm(t *testing.T) {
	runCombinations(t, every([]compiler{
		{machine: arm, cc: toolchains.GCC, flags: []string{"-Os", "-marm", "-fno-pic"}},
		{machine: arm, cc: toolchains.OldClang, flags: []string{"-Os", "-mthumb", "-fno-pic"}},
	}, []layout{pairs}, []mode{modeExe, modeStatic}))
	runCombinations(t, every([]compiler{
		crossCompiler(arm, toolchains.GCC, "-O2", "-marm"),
		crossCompiler(arm, toolchains.Clang, "-O2", "-mthumb"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}

// armHelper returns where a branch of Arm goes, through what linkers put between Thumb and
// A32. Which of the two a site is in its function tells.
func armHelper(t *testing.T, im *image, s site, code []byte) (to uint64, ok bool) {
	t.Helper()
	word := binary.LittleEndian.Uint32
	if !im.inThumb(s.addr) {
		insn := word(code)
		return uint64(uint32(s.addr) + 8 + uint32(int32(insn<<8)>>6)), insn>>25&7 == 5 && insn>>28 != 0xf
	}
	first, second := uint32(binary.LittleEndian.Uint16(code)), uint32(binary.LittleEndian.Uint16(code[2:]))
	if first>>11 != 0x1e || second>>14 < 2 || second>>14 == 2 && second>>12&1 == 0 {
		return 0, false
	}
	sign := first >> 10 & 1
	distance := second&0x7ff<<1 | first&0x3ff<<12 | (^(second>>11 ^ sign))&1<<22 | (^(second>>13 ^ sign))&1<<23
	distance |= -sign << 24
	if second>>14 == 3 && second>>12&1 == 0 { // blx
		return uint64(uint32(s.addr)&^3 + 4 + distance), true
	}
	return im.behindVeneer(t, uint64(uint32(s.addr)+4+distance)), true
}

// behindVeneer returns where code that changes the instruction set goes, or an address
// itself.
func (im *image) behindVeneer(t *testing.T, at uint64) uint64 {
	t.Helper()
	half := func(off uint64) uint32 { return uint32(binary.LittleEndian.Uint16(im.bytes(t, at+off, 2))) }
	word := func(off uint64) uint32 { return binary.LittleEndian.Uint32(im.bytes(t, at+off, 4)) }
	immediate := func(off uint64) uint32 { // of movw and movt
		a, b := half(off), half(off+2)
		return a&0xf<<12 | a>>10&1<<11 | b>>12&7<<8 | b&0xff
	}
	switch {
	case half(0) == 0x4778 && word(4)>>24 == 0xea: // bx pc; b
		return uint64(uint32(at) + 12 + uint32(int32(word(4)<<8)>>6))
	case half(0) == 0x4778: // bx pc; ldr ip, [pc]; add pc, ip, pc
		return uint64(uint32(at) + 16 + word(12))
	case half(0) == 0x46fc: // mov ip, pc; bx ip; ldr ip, [pc, #4]; add ip, ip, pc; bx ip
		return uint64(uint32(at) + 16 + word(16))
	case half(0)&0xfbf0 == 0xf240 && half(8) == 0x4760: // movw ip; movt ip; bx ip
		return uint64(immediate(4)<<16 | immediate(0))
	case half(0)&0xfbf0 == 0xf240 && half(8) == 0x44fc: // movw ip; movt ip; add ip, pc; bx ip
		return uint64(uint32(at) + 12 + (immediate(4)<<16 | immediate(0)))
	}
	return at
}

// inThumb reports whether the function before an address is of Thumb.
func (im *image) inThumb(addr uint64) bool {
	thumb := false
	for _, f := range im.funcs {
		if f.Value <= addr {
			thumb = im.thumb[f.Value]
		}
	}
	return thumb
}

// evenFunction takes the bit for Thumb off a function's symbol, and notes it.
func (im *image) evenFunction(s *elf.Symbol) {
	if im.file.Machine == elf.EM_ARM && s.Value&1 != 0 {
		s.Value &^= 1
		im.thumb[s.Value] = true
	}
}

// ofSameSet are flags for code of the instruction set that a compiler makes, lest linkers put
// something between a call and a stub: gcc is built for Thumb, and clang makes A32.
func (c compiler) ofSameSet() []string {
	a32 := c.cc != toolchains.GCC && !slices.Contains(c.flags, "-mthumb") || slices.Contains(c.flags, "-marm")
	if c.machine.Machine == toolchains.ARM && a32 {
		return []string{"-marm"}
	}
	return nil
}
