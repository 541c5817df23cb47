package amd64

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
)

const (
	opCall  = 0xe8 // call rel32
	opJmp   = 0xe9 // jmp rel32
	opRet   = 0xc3
	opTwo   = 0x0f // first byte of two, also of jcc rel32
	opGroup = 0xff // with ModRM 15 or 25: call or jmp *disp32(%rip)

	modrmCallRIP = 0x15
	modrmJmpRIP  = 0x25

	opJccShort = 0x70 // jcc rel8, with a condition in the lower half

	// endAddend is the addend of a field at the instruction's end that is to
	// hold a distance from the next instruction to the symbol itself.
	endAddend = -4
	fieldLen  = 4
)

const (
	fixNoPLT  = "compile without -fno-plt, or in Rust with -C relro-level=partial"
	fixLarge  = "compile without -mcmodel=large"
	fixDirect = "call the stub directly, and do not take its address"
	fixNop    = "mark the first byte of a nop 0f 1f 44 00 00"
)

// Decode recognises direct and GOT-indirect calls, jumps and conditional jumps, and
// marked nops.
func (Machine) Decode(t arch.Text, relocs []arch.Reloc) (arch.Site, error) {
	r := relocs[0]
	if len(relocs) > 1 {
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", Machine{}.RelocName(relocs[1].Type))
	}
	switch elf.R_X86_64(r.Type) {
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		return decodeDirect(t, r)
	case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX:
		return decodeGOT(t, r)
	case elf.R_X86_64_NONE:
		return decodeNop(t, r)
	case elf.R_X86_64_PLTOFF64, elf.R_X86_64_GOTOFF64, elf.R_X86_64_GOT64, elf.R_X86_64_GOTPCREL64, elf.R_X86_64_GOTPLT64:
		return arch.Site{}, arch.RefuseAddress(fixLarge, "a call through a register, as the large code model makes")
	case elf.R_X86_64_64:
		return arch.Site{}, arch.RefuseAddress(fixLarge+"; "+fixDirect, "an absolute address")
	}
	return arch.Site{}, arch.RefuseAddress(fixDirect, "no call and no jump")
}

func decodeDirect(t arch.Text, r arch.Reloc) (arch.Site, error) {
	site := arch.Site{}
	op := t.At(r.Offset-1, 1+fieldLen)
	op2 := t.At(r.Offset-2, 2+fieldLen)
	switch {
	case op != nil && op[0] == opCall:
		site = arch.Site{Offset: r.Offset - 1, Form: arch.Call, Code: op}
	case op != nil && op[0] == opJmp:
		site = arch.Site{Offset: r.Offset - 1, Form: arch.Tail, Code: op}
	case op2 != nil && isJccRel32(op2):
		site = arch.Site{Offset: r.Offset - 2, Form: arch.CondTail, Code: op2}
	default:
		return site, arch.RefuseAddress(fixDirect, "no call and no jump but %s", before(t, r))
	}
	return site, checkAddend(r)
}

func decodeGOT(t arch.Text, r arch.Reloc) (arch.Site, error) {
	op := t.At(r.Offset-2, 2+fieldLen)
	switch {
	case op != nil && op[0] == opGroup && op[1] == modrmCallRIP:
		return arch.Site{Offset: r.Offset - 2, Form: arch.Call, GOT: true, Code: op}, checkAddend(r)
	case op != nil && op[0] == opGroup && op[1] == modrmJmpRIP:
		return arch.Site{Offset: r.Offset - 2, Form: arch.Tail, GOT: true, Code: op}, checkAddend(r)
	}
	return arch.Site{}, arch.RefuseAddress(fixNoPLT+"; "+fixDirect, "a load of the stub's address from the GOT, %s", before(t, r))
}

func decodeNop(t arch.Text, r arch.Reloc) (arch.Site, error) {
	code := t.At(r.Offset, len(nop5))
	switch {
	case code == nil:
		return arch.Site{}, arch.Refuse(fixNop, "a mark that the section's end cuts off")
	case !bytes.Equal(code, nop5) && !bytes.Equal(code, nopNop5):
		return arch.Site{}, arch.Refuse(fixNop, "a mark of what is no nop but % x", code)
	case r.Addend != 0:
		return arch.Site{}, arch.Refuse(fixNop, "a mark with the stub%+d", r.Addend)
	}
	return arch.Site{Offset: r.Offset, Form: arch.Nop, Code: code}, nil
}

func checkAddend(r arch.Reloc) error {
	if r.Addend != endAddend {
		return arch.Refuse(fixDirect, "a call or jump to the stub%+d", r.Addend-endAddend)
	}
	return nil
}

// Live recognises what Decode does and what Flow finds, and a call with the prefix that
// linkers put before one that no longer goes through the GOT.
func (Machine) Live(t arch.Text, record uint64) bool {
	if b := t.At(record, 5); b != nil && (b[0] == opCall || b[0] == opJmp) {
		return true
	}
	if isIndirect(t, record) {
		return true
	}
	b := t.At(record, 6)
	return b != nil && (isJccRel32(b) || b[0] == prefixAddr32 && b[1] == opCall) // addr32 call rel32
}

// isJccRel32 recognises the opcodes 0f 80 to 0f 8f.
func isJccRel32(code []byte) bool { return code[0] == opTwo && code[1]&0xf0 == 0x80 }

// isIndirect recognises ff /2, call, and ff /4, jmp, behind a REX prefix or none.
func isIndirect(t arch.Text, at uint64) bool {
	if b := t.At(at, 1); b != nil && b[0]&0xf0 == 0x40 {
		at++
	}
	b := t.At(at, 2)
	return b != nil && b[0] == opGroup && (b[1]>>3&7 == 2 || b[1]>>3&7 == 4)
}

// Branch reads call, jmp and jcc rel32, and a call with the prefix. It reads the load of a
// helper's address too, which calls go to.
func (Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	if b := t.At(at, movLen); b != nil && isLea(b) {
		return behind(b, at), true
	}
	if b := t.At(at, 1); b != nil && b[0] == prefixAddr32 {
		at++
		if b = t.At(at, 1); b == nil || b[0] != opCall {
			return 0, false
		}
	}
	code := t.At(at, 1+fieldLen)
	if longer := t.At(at, 2+fieldLen); longer != nil {
		code = longer
	}
	Machine{}.Branches(code, at, func(from, dest uint64) {
		if from == at {
			to, ok = dest, true
		}
	})
	return to, ok
}

// Branches reads call, jmp and jcc rel32 wherever their opcodes are.
func (Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+1+fieldLen <= len(code); i++ {
		field := i + 1
		switch {
		case code[i] == opCall || code[i] == opJmp:
		case isJccRel32(code[i:]) && i+2+fieldLen <= len(code):
			field++
		default:
			continue
		}
		end := pc + uint64(field+fieldLen)
		f(pc+uint64(i), end+uint64(int32(binary.LittleEndian.Uint32(code[field:]))))
	}
}

// Slots reads call and jmp *disp32(%rip).
func (Machine) Slots(code []byte, pc, _ uint64, f func(at, slot uint64)) {
	const length = 2 + fieldLen
	for i := 0; i+length <= len(code); i++ {
		if code[i] == opGroup && (code[i+1] == modrmCallRIP || code[i+1] == modrmJmpRIP) {
			at := pc + uint64(i)
			f(at, at+length+uint64(int32(binary.LittleEndian.Uint32(code[i+2:]))))
		}
	}
}
