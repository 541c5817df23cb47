package riscv64

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

const (
	opLHU  = 0x5003 // lhu rd, imm12(rs1)
	regA0  = 10
	maskI  = 0x707f // opcode and funct3 of an I-type instruction
	loadA0 = opLHU | regA0<<7 | regA0<<15
)

// The load of a semaphore, by its assembly.
var (
	auipcA0 = []byte{0x17, 0x05, 0x00, 0x00} // auipc a0, %pcrel_hi(semaphore)
	lhuA0   = []byte{0x03, 0x55, 0x05, 0x00} // lhu a0, %pcrel_lo(auipc)(a0)
)

// test makes a call load the semaphore itself. A tail call has to return too: it goes to
// the helper, as it went to the stub.
func test(s arch.Site) arch.Change {
	c := arch.Change{Site: s, RecordedOffset: s.Offset}
	if s.Form == arch.Tail {
		c.New, c.Target = bytes.Clone(s.Code), arch.TargetTestHelper
		c.Reloc = elfreloc.Relocation{Offset: s.Offset, Type: uint32(elf.R_RISCV_CALL_PLT)}
		return c
	}
	c.New, c.Target = bytes.Join([][]byte{auipcA0, lhuA0}, nil), arch.TargetSemaphore
	c.Reloc = elfreloc.Relocation{Offset: s.Offset, Type: uint32(elf.R_RISCV_PCREL_HI20)}
	c.Low = &elfreloc.Relocation{Offset: s.Offset + insnLen, Type: uint32(elf.R_RISCV_PCREL_LO12_I)}
	return c
}

// findTest matches what test has made.
func findTest(t arch.Text, record uint64) (arch.Site, bool) {
	if _, ok := (Machine{}).LoadedSemaphore(t, record); ok {
		return arch.Site{Offset: record, Form: arch.Call, Code: t.At(record, pairLen)}, true
	}
	site, err := call.Decode(t, elfreloc.Relocation{Offset: record})
	if err != nil || site.Form != arch.Tail {
		return arch.Site{}, false
	}
	return site, true
}

// LoadedSemaphore reads auipc and lhu, with which a helper begins too.
func (Machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	code := t.At(at, pairLen)
	if code == nil {
		return 0, false
	}
	auipc, lhu := binary.LittleEndian.Uint32(code), binary.LittleEndian.Uint32(code[insnLen:])
	if auipc&0xfff != opAUIPC|regA0<<7 || lhu&(maskI|31<<7|31<<15) != loadA0 {
		return 0, false
	}
	return at + uint64(int64(int32(auipc&0xfffff000))) + uint64(int64(int32(lhu)>>20)), true
}
