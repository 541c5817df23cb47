package amd64

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"
)

// decode decodes an instruction, endbr64 too, of which x86asm knows the prefix alone. n
// is its length in bytes, 0 for what is none or is not known. What has a VEX or EVEX
// prefix has no Op: it neither jumps nor calls.
func decode(code []byte) (inst x86asm.Inst, n int) {
	if bytes.HasPrefix(code, endbr64) {
		return x86asm.Inst{Op: x86asm.NOP}, len(endbr64)
	}
	if n = vexLen(code); n != 0 {
		return inst, n
	}
	inst, err := x86asm.Decode(code, 64)
	if err != nil || inst.Op == 0 || inst.Len > len(code) {
		return inst, 0
	}
	return inst, inst.Len
}

// vexLen returns the length of an instruction with a VEX or EVEX prefix (Intel SDM, volume
// 2, sections 2.3 and 2.7), 0 for any other.
func vexLen(code []byte) int {
	var prefix int
	var opcodes byte // the map
	switch {
	case len(code) < 6:
		return 0
	case code[0] == 0xc5:
		prefix, opcodes = 2, 1
	case code[0] == 0xc4:
		prefix, opcodes = 3, code[1]&0x1f
	case code[0] == 0x62:
		prefix, opcodes = 4, code[1]&7
	default:
		return 0
	}
	if opcodes == 0 || opcodes == 4 || opcodes > 6 {
		return 0 // of none, or of APX
	}
	op, n := code[prefix], prefix+1
	if opcodes == 1 && op == 0x77 { // vzeroupper, vzeroall
		return n
	}
	modrm, sib := code[n], byte(0)
	n++
	if modrm>>6 != 3 && modrm&7 == 4 {
		if n == len(code) {
			return 0
		}
		sib = code[n]
		n++
	}
	switch {
	case modrm>>6 == 1:
		n++
	case modrm>>6 == 2, modrm>>6 == 0 && (modrm&7 == 5 || modrm&7 == 4 && sib&7 == 5):
		n += 4
	}
	if opcodes == 3 || opcodes == 1 && (op >= 0x70 && op <= 0x73 || op == 0xc2 || op >= 0xc4 && op <= 0xc6) {
		n++ // an immediate of 8 bits
	}
	if n > len(code) {
		return 0
	}
	return n
}
