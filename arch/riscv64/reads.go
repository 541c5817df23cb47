package riscv64

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Reads finds loads of a halfword behind auipc or lui, and behind an addition to it.
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
		base, register, size := upper(binary.LittleEndian.Uint32(code[i:]), pc+uint64(i))
		if size == 0 {
			continue
		}
		end := i + arch.ReadWindow
		each(i+size, end, register, load(base))
		each(i+size, end, register, func(j int, op, insn uint32, displacement uint64) {
			if op == opADD {
				each(j+insnLen, end, insn>>7&31, load(base+displacement))
			}
		})
	}
}

// upper returns what an instruction of size bytes puts into a register as the upper bits
// of an address; size is 0 for others.
func upper(insn uint32, pc uint64) (base uint64, register uint32, size int) {
	const (
		opLUI  = 0x37   // lui rd, imm20
		opCLUI = 0x6001 // c.lui rd, imm6
	)
	base, register = uint64(int64(int32(insn&0xfffff000))), insn>>7&31
	switch {
	case insn&0x7f == opAUIPC:
		return pc + base, register, insnLen
	case insn&0x7f == opLUI:
		return base, register, insnLen
	case insn&0xe003 == opCLUI && register != 2: // of sp it is another one
		return uint64(int64(int32(insn>>12&1<<31|insn>>2&31<<26) >> 14)), register, insnLen / 2
	}
	return 0, 0, 0
}
