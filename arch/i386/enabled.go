package i386

import (
	"bytes"

	"sdtconvert/arch"
)

// test has an is-enabled site go to the helper that loads the semaphore, as it went to
// the stub: no site has room for a load that runs wherever it is put.
func test(s arch.Site) (arch.Change, error) {
	c := arch.Change{Site: s, Record: s.Offset, Target: arch.TargetTest, Reloc: distance(s.Offset + 1)}
	switch {
	case s.Form == arch.CondTail && len(s.Code) == 2+fieldLen:
		c.New = bytes.Clone(call6)
		copy(c.New, s.Code[:2]) // jcc rel32
		c.Reloc.Offset++
	case s.Form == arch.Tail && len(s.Code) == len(jmp5):
		c.New = bytes.Clone(jmp5)
	case s.Form == arch.Tail && len(s.Code) == len(jmp6):
		c.New = bytes.Clone(jmp6)
	case s.Form == arch.Call && len(s.Code) == len(call5):
		c.New = bytes.Clone(call5)
	case s.Form == arch.Call && len(s.Code) == len(call6):
		c.New = bytes.Clone(call6)
		c.Reloc.Offset++
	default:
		return arch.Change{}, refuseLength(s, arch.Enabled)
	}
	return c, nil
}

// findTest matches what test has made, but for jumps.
func findTest(t arch.Text, record uint64) (arch.Site, bool) {
	if b := t.At(record, len(call5)); b != nil && b[0] == opCall {
		return arch.Site{Offset: record, Form: arch.Call, Code: b}, true
	}
	b := t.At(record, len(call6))
	switch {
	case b == nil:
	case b[0] == call6[0] && b[1] == call6[1]:
		return arch.Site{Offset: record, Form: arch.Call, GOT: true, Code: b}, true
	case isJccRel32(b):
		return arch.Site{Offset: record, Form: arch.CondTail, Code: b}, true
	}
	return arch.Site{}, false
}

// A helper that loads a semaphore has its own address from a function behind it, which
// reads where it returns to. A call of the next instruction, and a pop, would do as well,
// but for shadow stacks.
var (
	endbr32  = []byte{0xf3, 0x0f, 0x1e, 0xfb}
	load7    = []byte{0x0f, 0xb7, 0x80, 0x03, 0x00, 0x00, 0x00} // movzwl disp32(%eax),%eax
	readHere = []byte{0x8b, 0x04, 0x24}                         // mov (%esp),%eax
)

// loadField is the offset of the field in load7. The field's relocation is of a distance
// from itself, and what is added is one from the start, so this is its addend, too.
const loadField = 3

// Load reads the load of a helper, with the call before and the return behind it.
func (Machine) Load(t arch.Text, at uint64) (addr uint64, ok bool) {
	if bytes.Equal(t.At(at, len(endbr32)), endbr32) {
		at += uint64(len(endbr32))
	}
	call := t.At(at, len(call5))
	base := at + uint64(len(call5))
	load := t.At(base, len(load7)+1)
	if call == nil || call[0] != opCall || load == nil || !bytes.Equal(load[:loadField], load7[:loadField]) {
		return 0, false
	}
	returns := retLen
	if load[len(load7)] == opJmp {
		returns = len(jmp5)
	} else if load[len(load7)] != opRet {
		return 0, false
	}
	if field(call) != int32(len(load7)+returns) {
		return 0, false
	}
	return uint64(uint32(base) + uint32(field(load[:len(load7)]))), true
}
