package loong64

import (
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
)

// The load of a semaphore, by its assembly.
var (
	pcalau12i = []byte{0x04, 0x00, 0x00, 0x1a} // pcalau12i $a0, %pc_hi20(semaphore)
	ldhu      = []byte{0x84, 0x00, 0x40, 0x2a} // ld.hu $a0, $a0, %pc_lo12(semaphore)
)

// test has a call of two instructions load the semaphore itself. One instruction is too
// short, and a tail call has to return too: these go to the helper, as they went to the stub.
func test(s arch.Site) arch.Change {
	if s.Form == arch.Tail || len(s.Code) == insnLen {
		return jump(s, arch.TargetTest)
	}
	return arch.Change{
		Site: s, New: join(pcalau12i, ldhu), Record: s.Offset, Target: arch.TargetSemaphore,
		Reloc: arch.Reloc{Offset: s.Offset, Type: uint32(elf.R_LARCH_PCALA_HI20)},
		Low:   &arch.Reloc{Offset: s.Offset + insnLen, Type: uint32(elf.R_LARCH_PCALA_LO12)},
	}
}

// findTest matches what test and jump have made.
func findTest(t arch.Text, record uint64) (arch.Site, bool) {
	if code := t.At(record, pairLen); code != nil {
		if _, ok := (Machine{}).Load(t, record); ok {
			return arch.Site{Offset: record, Form: arch.Call, Code: code}, true
		}
		if first, second := pair(code); isPair(first, second) && second&31 == regZero {
			return arch.Site{Offset: record, Form: arch.Tail, Code: code}, true
		}
	}
	code := t.At(record, insnLen)
	if code == nil {
		return arch.Site{}, false
	}
	site := arch.Site{Offset: record, Code: code}
	switch binary.LittleEndian.Uint32(code) & branchMask {
	case opBL:
		site.Form = arch.Call
	case opB:
		site.Form = arch.Tail
	default:
		return arch.Site{}, false
	}
	return site, true
}

// Load reads pcalau12i and ld.hu, with which a helper begins too.
func (Machine) Load(t arch.Text, at uint64) (addr uint64, ok bool) {
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
