package loong64

import (
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// The load of a semaphore in a helper, by its assembly.
var (
	pcalau12i = []byte{0x04, 0x00, 0x00, 0x1a} // pcalau12i $a0, %pc_hi20(semaphore)
	ldhu      = []byte{0x84, 0x00, 0x40, 0x2a} // ld.hu $a0, $a0, %pc_lo12(semaphore)
)

// findTest matches jumps to a helper, which loads the semaphore, or returns 0 where a tail
// call of one instruction has no room to. A pair has room for the load, but then a relocation
// would have to stand between others: lld 19 applies what is not sorted in the wrong place
// once it deletes code.
func findTest(t arch.Text, record uint64) (arch.Site, bool) {
	if site, err := call.Decode(t, elfreloc.Relocation{Offset: record}); err == nil {
		return site, true
	}
	site, err := branch.Decode(t, elfreloc.Relocation{Offset: record})
	return site, err == nil
}

// LoadedSemaphore reads pcalau12i and ld.hu, with which a helper begins.
func (Machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	code := t.At(at, pairLen)
	if code == nil {
		return 0, false
	}
	first, load := pair(code)
	if first&(pcMask|31) != binary.LittleEndian.Uint32(pcalau12i) || load&(loadMask|0x3ff) != binary.LittleEndian.Uint32(ldhu) {
		return 0, false
	}
	return at&^0xfff + signed20(first)<<12 + signed12(load), true
}
