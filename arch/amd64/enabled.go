package amd64

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
)

// test has an is-enabled site load the semaphore. The load of 2 bytes is one of 7, and
// no site is as long; so the site goes to the helper that has it, as it went to the
// stub. A call through the GOT has room for a load of 4.
func test(s arch.Site, env arch.Env) (arch.Change, error) {
	c := arch.Change{Site: s, Record: s.Offset, Target: arch.TargetTest, Reloc: arch.Reloc{Offset: s.Offset + 1, Type: uint32(elf.R_X86_64_PLT32), Addend: endAddend}}
	switch {
	case s.Register && len(s.Code) == movLen:
		c.New = bytes.Clone(s.Code) // the load becomes one of the helper's address, which calls go on to
		c.New[1] = opLea
		clear(c.New[movField:])
		c.Reloc.Offset, c.Reloc.Type = s.Offset+movField, uint32(elf.R_X86_64_PC32)
	case s.Form == arch.CondTail && len(s.Code) == 2+fieldLen:
		c.New = bytes.Clone(s.Code) // jcc rel32
		clear(c.New[2:])
		c.Reloc.Offset++
	case s.Form == arch.Tail && len(s.Code) == len(jmp5):
		c.New = bytes.Clone(jmp5)
	case s.Form == arch.Tail && len(s.Code) == len(jmp6):
		c.New = bytes.Clone(jmp6)
	case s.Form == arch.Call && len(s.Code) == len(call5):
		c.New = bytes.Clone(call5)
	case s.Form == arch.Call && len(s.Code) == len(load6) && env.Semaphore >= 4:
		c.New, c.Target = bytes.Clone(load6), arch.TargetSemaphore
		c.Reloc.Offset, c.Reloc.Type = s.Offset+2, uint32(elf.R_X86_64_PC32)
	case s.Form == arch.Call && len(s.Code) == len(call6):
		c.New = bytes.Clone(call6)
		c.Reloc.Offset++
	default:
		return arch.Change{}, arch.Refuse("", "%s of %d bytes", arch.One(arch.Enabled, s.Form), len(s.Code))
	}
	return c, nil
}

// findTest matches what test has made, but for jumps.
func findTest(t arch.Text, record uint64) (arch.Site, bool) {
	if b := t.At(record, len(call5)); b != nil && b[0] == opCall {
		return arch.Site{Offset: record, Form: arch.Call, Code: b}, true
	}
	if b := t.At(record, movLen); b != nil && isLea(b) {
		return arch.Site{Offset: record, Form: arch.Call, GOT: true, Register: true, Code: b}, true
	}
	b := t.At(record, len(load6))
	switch {
	case b == nil:
	case b[0] == load6[0] && b[1] == load6[1], b[0] == call6[0] && b[1] == call6[1]:
		return arch.Site{Offset: record, Form: arch.Call, GOT: true, Code: b}, true
	case isJccRel32(b):
		return arch.Site{Offset: record, Form: arch.CondTail, Code: b}, true
	}
	return arch.Site{}, false
}

const opLea = 0x8d

// isLea recognises lea disp32(%rip) into a register of 64 bits.
func isLea(code []byte) bool { return code[0]&^4 == 0x48 && code[1] == opLea && code[2]&0xc7 == 5 }

var (
	endbr64 = []byte{0xf3, 0x0f, 0x1e, 0xfa}
	load7   = []byte{0x0f, 0xb7, 0x05, 0x00, 0x00, 0x00, 0x00} // movzwl disp32(%rip),%eax
)

// Load reads the load of a site, or that of a helper with the return behind it.
func (Machine) Load(t arch.Text, at uint64) (addr uint64, ok bool) {
	if b := t.At(at, len(load6)); b != nil && bytes.Equal(b[:2], load6[:2]) {
		return behind(b, at), true
	}
	if bytes.Equal(t.At(at, len(endbr64)), endbr64) {
		at += uint64(len(endbr64))
	}
	b := t.At(at, len(load7)+1)
	if b == nil || !bytes.Equal(b[:3], load7[:3]) || b[len(load7)] != opRet && b[len(load7)] != opJmp {
		return 0, false
	}
	return behind(b[:len(load7)], at), true
}

// behind is the address that an instruction which ends with a displacement is about.
func behind(insn []byte, at uint64) uint64 {
	end := len(insn) - fieldLen
	return at + uint64(len(insn)) + uint64(int32(binary.LittleEndian.Uint32(insn[end:])))
}
