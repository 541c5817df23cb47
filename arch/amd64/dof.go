package amd64

import (
	"bytes"
	"debug/elf"
	"slices"

	"sdtconvert/arch"
)

// The disabled forms of dtrace -G consist of instructions of one byte, as far as a trap
// may be put over them: fasttrap, the part of illumos and FreeBSD that arms sites, puts
// int3 over the recorded byte and emulates what was there. Of a test it sets rax to 1
// and then does the same, so what is recorded is the nop or the return behind xor.
// Sites of 5 bytes are as DTrace itself makes them, the others (calls through the global
// offset table and conditional jumps, which it refuses) of the same instructions.
const opNop = 0x90

var (
	zeroRAX = []byte{0x48, 0x33, 0xc0} // xor %rax,%rax
	zeroEAX = []byte{0x33, 0xc0}       // xor %eax,%eax
)

// fieldsDOF are the distances from a site's first byte to its relocated field.
var fieldsDOF = []uint64{1, 2}

const fixDOFRegister = "compile without -mcmodel=large, and without -fno-plt"

// DisableDOF fills a site with nops behind what it has to do.
func (Machine) DisableDOF(s arch.Site, k arch.Kind) (arch.Change, error) {
	if s.Register || s.Form == arch.Nop || len(s.Code) < len(nop5) {
		return arch.Change{}, arch.Refuse(fixDOFRegister, "%s that is no call or jump of its own, which dtrace -G has no form for", arch.One(k, s.Form))
	}
	c := arch.Change{Site: s, New: bytes.Repeat([]byte{opNop}, len(s.Code)), Record: s.Offset}
	code := c.New
	if len(code) > len(nop5) && s.Form != arch.CondTail {
		copy(code[len(code)-len(nop2):], nop2) // or it would hold a form of 5 bytes
	}
	if s.Form == arch.CondTail {
		if code[0] = s.Code[0]; s.Code[0] == opTwo {
			code[0] = 0x70 | (s.Code[1]&0x0f ^ 1) // jcc over what is done if the probe is reached
		}
		code[1] = byte(len(code) - condSkip)
		code, c.Record = code[condSkip:], c.Record+condSkip
	}
	if k == arch.Enabled {
		zero := zeroRAX
		if s.Form == arch.CondTail { // which has 4 bytes left
			zero = zeroEAX
		}
		code, c.Record = code[copy(code, zero):], c.Record+uint64(len(zero))
	}
	if s.Form != arch.Call {
		code[0] = opRet
	}
	return c, nil
}

// DisabledDOF compares what is around the field with each form.
func (m Machine) DisabledDOF(t arch.Text, field uint64, k arch.Kind) (arch.Site, bool) {
	for _, before := range fieldsDOF {
		if field < before {
			continue
		}
		code := t.At(field-before, int(before)+fieldLen)
		if code == nil {
			continue
		}
		for _, form := range []arch.Form{arch.Call, arch.Tail, arch.CondTail} {
			isCond := form == arch.CondTail
			if isCond && (len(code) != len(condRet) || code[0]&0xf0 != 0x70) {
				continue
			}
			s := arch.Site{Offset: field - before, Form: form, GOT: !isCond && before > 1, Code: slices.Clone(code)}
			if c, err := m.DisableDOF(s, k); err == nil && bytes.Equal(c.New, code) {
				return s, true
			}
		}
	}
	return arch.Site{}, false
}

var traitsDOF = arch.DOF{Distance: uint32(elf.R_X86_64_PC64), Tests: true}
