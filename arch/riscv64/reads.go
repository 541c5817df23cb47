package riscv64

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Reads finds auipc with a load of a halfword or an addition behind it.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	const (
		mask  = 0x707f
		opLH  = 0x1003 // lh rd, imm12(rs1)
		opLHU = 0x5003 // lhu rd, imm12(rs1)
		opADD = 0x0013 // addi rd, rs1, imm12
	)
	for i := 0; i+insnLen <= len(code); i += 2 {
		first := binary.LittleEndian.Uint32(code[i:])
		if first&0x7f != opAUIPC {
			continue
		}
		base := pc + uint64(i) + uint64(int64(int32(first&0xfffff000)))
		for j := i + insnLen; j < i+arch.ReadWindow && j+insnLen <= len(code); j += 2 {
			next := binary.LittleEndian.Uint32(code[j:])
			if op := next & mask; op != opLH && op != opLHU && op != opADD || next>>15&31 != first>>7&31 {
				continue
			}
			if address := base + uint64(int64(int32(next)>>20)); lo <= address && address < hi {
				f(pc+uint64(j), address)
			}
		}
	}
}
