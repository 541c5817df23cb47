package s390x

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

// The disabled forms, by their assembly.
var (
	nop      = []byte{0xc0, 0x04, 0x00, 0x00, 0x00, 0x00} // brcl 0, .
	ret      = []byte{0x07, 0xfe, 0x07, 0x00, 0x07, 0x00} // br %r14; bcr 0, %r0; bcr 0, %r0
	condRet  = []byte{0xa7, 0x04, 0x00, 0x03, 0x07, 0xfe} // brc inverted, over; br %r14; over:
	zero     = []byte{0xa7, 0x29, 0x00, 0x00, 0x07, 0x00} // lghi %r2, 0; bcr 0, %r0
	zeroRet  = []byte{0xa7, 0x29, 0x00, 0x00, 0x07, 0xfe} // lghi %r2, 0; br %r14
	jg       = []byte{0xc0, 0xf4, 0x00, 0x00, 0x00, 0x00} // brcl 15, helper
	condJump = []byte{0xc0, 0x04, 0x00, 0x00, 0x00, 0x00} // brcl condition, helper
)

// condSkip is the length of the brc before the instruction that executes only when the
// probe is reached.
const condSkip = 4

// table has those that return by themselves: of a conditional test it takes the helper.
var table = forms.Table{
	arch.Probe:   {arch.Call: nop, arch.Tail: ret, arch.CondTail: condRet, arch.Nop: nop},
	arch.Enabled: {arch.Call: zero, arch.Tail: zeroRet, arch.CondTail: condJump},
}

var mark = forms.Mark{Nops: [][]byte{nop}, Align: halfword, Want: "brcl 0, .", Fix: "mark brcl 0, ."}

// Disable writes the form of the site's kind and form. Kernels single-step all of them
// out of line when they arm them, so there are no armable ones.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	code, err := table.Code(s, k)
	if err != nil {
		return arch.Change{}, err
	}
	_, half := opcode(s.Code)
	if k == arch.Enabled && s.Form == arch.Call && half != regReturn {
		return arch.Change{}, arch.RefuseSite(k, s.Form, "call with brasl %r14", " that links through %%r%d", half)
	}
	returns := s.Form == arch.Tail || s.Form == arch.CondTail
	switch {
	case k == arch.Enabled && env.SemaphoreBytes != 0:
		return test(s, half), nil
	case returns && env.ReturnThunk && k == arch.Probe && s.Form == arch.CondTail:
		return arch.Change{}, arch.Refuse("compile with -fno-optimize-sibling-calls",
			"a conditional tail call in code that returns through a thunk")
	case returns && env.ReturnThunk && k == arch.Probe:
		return jump(s, half, arch.TargetThunk), nil
	case k == arch.Enabled && (s.Form == arch.CondTail || returns && env.ReturnThunk):
		return jump(s, half, arch.TargetHelper), nil
	}
	c := arch.Change{Site: s, New: bytes.Clone(code), RecordedOffset: s.Offset}
	if s.Form == arch.CondTail {
		c.New[1] |= (always - half) << 4
		c.RecordedOffset += condSkip
	}
	return c, nil
}

// jump makes a site go elsewhere on its own condition.
func jump(s arch.Site, condition byte, to arch.Target) arch.Change {
	c := arch.Change{Site: s, New: bytes.Clone(condJump), RecordedOffset: s.Offset, Target: to}
	c.New[1] |= condition << 4
	c.Reloc = elfreloc.Relocation{Offset: s.Offset + fieldAt, Type: uint32(elf.R_390_PC32DBL), Addend: addend}
	return c
}

// Disabled matches the bytes at a record against the forms of its kind: the conditional
// tail call first, which ends as a tail call begins.
func (Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	if b := t.At(record-condSkip, siteLen); k == arch.Probe && record >= condSkip && b != nil && isCondRet(b) {
		return arch.Site{Offset: record - condSkip, Form: arch.CondTail, Code: b}, true
	}
	code := t.At(record, siteLen)
	if code == nil {
		return arch.Site{}, false
	}
	site := arch.Site{Offset: record, Form: arch.Call, Code: code}
	op, condition := opcode(code)
	switch {
	case bytes.Equal(code, table[k][arch.Call]), k == arch.Enabled && isTest(code):
		return site, true
	case bytes.Equal(code, table[k][arch.Tail]), op == opBRCL && condition == always:
		site.Form = arch.Tail
		return site, true
	case k == arch.Enabled && op == opBRCL && condition != never:
		site.Form = arch.CondTail
		return site, true
	}
	return arch.Site{}, false
}

// isCondRet reports whether code is a return that some condition jumps over.
func isCondRet(code []byte) bool {
	condition := code[1] >> 4
	return condition != always && condition != never && code[1]&0xf == condRet[1] &&
		code[0] == condRet[0] && bytes.Equal(code[2:], condRet[2:])
}
