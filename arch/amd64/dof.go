package amd64

import (
	"bytes"
	"debug/elf"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
)

// fasttrap, the part of illumos and FreeBSD that arms sites, puts int3 over the first byte
// of the recorded instruction. For a probe it then emulates the instruction; for a test it
// sets rax to 1 and skips it. So the instruction of a probe is a nop or a return, and that
// of a test may not be a return: DTrace itself records the return behind xor of a test that
// is a tail call, and an armed one runs on into the next function. Here it is the xor.
// Sites of 5 bytes have the bytes of DTrace itself, the others (calls through the global
// offset table and conditional jumps, which it refuses) the same instructions.
var (
	zeroRAX = []byte{0x48, 0x33, 0xc0} // xor %rax,%rax
	zeroEAX = []byte{0x33, 0xc0}       // xor %eax,%eax
)

const fixDOFRegister = "compile without -mcmodel=large, and without -fno-plt"

// DisableDOF fills a site with nops behind what it has to do.
func (machine) DisableDOF(s arch.Site, k arch.Kind) (arch.Change, error) {
	if s.Register || s.Form == arch.Nop || len(s.Code) < len(nop5) {
		return arch.Change{}, arch.RefuseSite(k, s.Form, fixDOFRegister, " that is not a direct call or jump, which dtrace -G has no form for")
	}
	c := arch.Change{Site: s, New: bytes.Repeat([]byte{x86.OpNop}, len(s.Code)), RecordedOffset: s.Offset}
	code := c.New
	if len(code) > len(nop5) && s.Form != arch.CondTail {
		copy(code[len(code)-len(nop2):], nop2) // or it would hold a form of 5 bytes
	}
	if s.Form == arch.CondTail {
		if code[0] = s.Code[0]; s.Code[0] == x86.OpTwo {
			code[0] = x86.Inverted(s.Code) // jcc over what is done if the probe is reached
		}
		code[1] = byte(len(code) - x86.CondSkip)
		code, c.RecordedOffset = code[x86.CondSkip:], c.RecordedOffset+x86.CondSkip
	}
	if k == arch.Enabled {
		zero := zeroRAX
		if s.Form == arch.CondTail { // which has 4 bytes left
			zero = zeroEAX
		}
		code = code[copy(code, zero):]
		if s.Form == arch.Call {
			c.RecordedOffset += uint64(len(zero)) // which debuggers expect
		}
	}
	if s.Form != arch.Call {
		code[0] = x86.OpRet
	}
	return c, nil
}

// shapesDOF are what DisableDOF fills. The relocated field is at the end.
var shapesDOF = []struct {
	form arch.Form
	size int
}{{arch.Call, 5}, {arch.Tail, 5}, {arch.Call, 6}, {arch.Tail, 6}, {arch.CondTail, 6}}

// DisabledDOF compares what is around the field with each form.
func (m machine) DisabledDOF(t arch.Text, field uint64, k arch.Kind) (arch.Site, bool) {
	for _, shape := range shapesDOF {
		off := field - uint64(shape.size-x86.FieldLen)
		if s, _, ok := m.shapedDOF(t, off, k, shape.form, shape.size); ok {
			return s, true
		}
	}
	return arch.Site{}, false
}

// RecordedDOF compares what is around the record with each form. Sites that begin farther
// before it come first: a conditional tail call ends as a tail call begins. Of a test that
// is a tail call, the record may also be the return, as in objects of DTrace itself.
func (m machine) RecordedDOF(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	for before := len(zeroEAX) + x86.CondSkip; before >= 0; before-- {
		for _, shape := range shapesDOF {
			s, c, ok := m.shapedDOF(t, record-uint64(before), k, shape.form, shape.size)
			if ok && (c.RecordedOffset == record || k == arch.Enabled && c.New[record-s.Offset] == x86.OpRet) {
				return s, true
			}
		}
	}
	return arch.Site{}, false
}

// shapedDOF reports whether a site of a form and size is at off, as DisableDOF makes it.
func (m machine) shapedDOF(t arch.Text, off uint64, k arch.Kind, form arch.Form, size int) (arch.Site, arch.Change, bool) {
	code := t.At(off, size)
	isCond := form == arch.CondTail
	if code == nil || isCond && code[0]&0xf0 != x86.OpJccShort {
		return arch.Site{}, arch.Change{}, false
	}
	s := arch.Site{Offset: off, Form: form, GOT: !isCond && size > len(nop5), Code: slices.Clone(code)}
	c, err := m.DisableDOF(s, k)
	return s, c, err == nil && bytes.Equal(c.New, code)
}

var traitsDOF = arch.DOF{Distance: uint32(elf.R_X86_64_PC64), Tests: true}
