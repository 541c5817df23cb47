package riscv64

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Reads finds loads of a halfword behind auipc, and behind an addition to it.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	const (
		mask  = 0x707f
		opLH  = 0x1003 // lh rd, imm12(rs1)
		opLHU = 0x5003 // lhu rd, imm12(rs1)
		opADD = 0x0013 // addi rd, rs1, imm12
	)
	each := func(from, end int, register uint32, do func(i int, op, insn uint32, displacement uint64)) {
		for i := from; i < end && i+insnLen <= len(code); i += 2 {
			if insn := binary.LittleEndian.Uint32(code[i:]); insn>>15&31 == register {
				do(i, insn&mask, insn, uint64(int64(int32(insn)>>20)))
			}
		}
	}
	load := func(base uint64) func(i int, op, insn uint32, displacement uint64) {
		return func(i int, op, _ uint32, displacement uint64) {
			if address := base + displacement; (op == opLH || op == opLHU) && lo <= address && address < hi {
				f(pc+uint64(i), address)
			}
		}
	}
	for i := 0; i+insnLen <= len(code); i += 2 {
		first := binary.LittleEndian.Uint32(code[i:])
		if first&0x7f != opAUIPC {
			continue
		}
		base, end := pc+uint64(i)+uint64(int64(int32(first&0xfffff000))), i+arch.ReadWindow
		each(i+insnLen, end, first>>7&31, load(base))
		each(i+insnLen, end, first>>7&31, func(j int, op, insn uint32, displacement uint64) {
			if op == opADD {
				each(j+insnLen, end, insn>>7&31, load(base+displacement))
			}
		})
	}
}
