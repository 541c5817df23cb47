package amd64

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

// load6 is the load of an is-enabled test that was a call through the GOT.
var load6 = []byte{0x8b, 0x05, 0x00, 0x00, 0x00, 0x00} // mov disp32(%rip),%eax

// test makes the tests that are not sent to the helper as they were to the stub. The load
// of 2 bytes is one of 7, and no site is as long. A call through the GOT has room for a load
// of 4.
func test(s arch.Site, env arch.Context) (c arch.Change, ok bool) {
	c = arch.Change{Site: s, RecordedOffset: s.Offset, Target: arch.TargetTestHelper, Reloc: elfreloc.Relocation{Type: uint32(elf.R_X86_64_PC32), Addend: x86.EndAddend}}
	switch {
	case s.Register && len(s.Code) == movLen:
		c.New = bytes.Clone(s.Code) // the load becomes one of the helper's address, which calls go on to
		c.New[1] = opLea
		clear(c.New[movField:])
		c.Reloc.Offset = s.Offset + movField
		return c, true
	case s.Form == arch.Call && len(s.Code) == len(load6) && env.SemaphoreBytes >= 4:
		c.New, c.Target = bytes.Clone(load6), arch.TargetSemaphore
		c.Reloc.Offset = s.Offset + 2
		return c, true
	}
	return arch.Change{}, false
}

// findTest matches what test has made.
func findTest(t arch.Text, record uint64) (arch.Site, bool) {
	if b := t.At(record, movLen); b != nil && isLea(b) {
		return arch.Site{Offset: record, Form: arch.Call, GOT: true, Register: true, Code: b}, true
	}
	if b := t.At(record, len(load6)); b != nil && bytes.HasPrefix(b, load6[:2]) {
		return arch.Site{Offset: record, Form: arch.Call, GOT: true, Code: b}, true
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

// LoadedSemaphore reads the load of a site, or the load of a helper with the return behind it.
func (machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	if b := t.At(at, len(load6)); b != nil && bytes.Equal(b[:2], load6[:2]) {
		return mode.Behind(b, at), true
	}
	if bytes.Equal(t.At(at, len(endbr64)), endbr64) {
		at += uint64(len(endbr64))
	}
	b := t.At(at, len(load7)+1)
	if b == nil || !bytes.Equal(b[:3], load7[:3]) || b[len(load7)] != x86.OpRet && b[len(load7)] != x86.OpJmp {
		return 0, false
	}
	return mode.Behind(b[:len(load7)], at), true
}
