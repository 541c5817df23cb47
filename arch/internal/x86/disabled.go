package x86

import (
	"bytes"

	"sdtconvert/arch"
)

// Disabled matches the bytes at a record against the forms of its kind: the
// conditional tail call first, which ends as a tail call does where int3 pads
// the code.
func (m *Mode) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	if b := t.At(record-CondSkip, longLen); record >= CondSkip && b != nil && m.isCondTail(b, k) {
		return arch.Site{Offset: record - CondSkip, Form: arch.CondTail, Code: b}, true
	}
	for _, forms := range []*family{&m.disabled().plain[k], &m.disabled().armable[k]} {
		if site, ok := forms.find(t, record); ok {
			return site, true
		}
	}
	if k == arch.Enabled {
		if site, ok := findTest(t, record); ok {
			return site, true
		}
	}
	if b := t.At(record, branchLen); b != nil && b[0] == OpJmp {
		if longer := t.At(record, longLen); longer != nil && longer[branchLen] == OpInt3 {
			b = longer
		}
		return arch.Site{Offset: record, Form: arch.Tail, GOT: len(b) == longLen, Code: b}, true
	}
	return arch.Site{}, false
}

// find matches the bytes at a record against the calls and tail calls of a family, the
// longest first, because a ret of 6 bytes begins as one of 5 does, and xor and ret as xor
// alone.
func (f *family) find(t arch.Text, record uint64) (arch.Site, bool) {
	var found arch.Site
	for _, form := range []arch.Form{arch.Call, arch.Tail} {
		for _, code := range f[form] {
			if b := t.At(record, len(code)); len(code) > len(found.Code) && b != nil && bytes.Equal(b, code) {
				found = arch.Site{Offset: record, Form: form, GOT: len(code) == longLen, Register: len(code) < branchLen, Code: b}
			}
		}
	}
	return found, found.Code != nil
}

// findTest matches what test has made, but for jumps.
func findTest(t arch.Text, record uint64) (arch.Site, bool) {
	if b := t.At(record, branchLen); b != nil && b[0] == OpCall {
		return arch.Site{Offset: record, Form: arch.Call, Code: b}, true
	}
	b := t.At(record, longLen)
	switch {
	case b == nil:
	case b[0] == prefixAddr && b[1] == OpCall:
		return arch.Site{Offset: record, Form: arch.Call, GOT: true, Code: b}, true
	case IsJcc(b):
		return arch.Site{Offset: record, Form: arch.CondTail, Code: b}, true
	}
	return arch.Site{}, false
}

// isCondTail reports whether code is a disabled conditional tail call, with any
// condition and, through a thunk, any distance to the return.
func (m *Mode) isCondTail(code []byte, k arch.Kind) bool {
	code = bytes.Clone(code)
	code[0] &= 0xf0
	if d := m.disabled(); bytes.Equal(code, d.plain[k][arch.CondTail][0]) || bytes.Equal(code, d.armable[k][arch.CondTail][0]) {
		return true
	}
	want := condThunk[k]
	code[bytes.IndexByte(want, OpJmpShort)+1] = 0
	return bytes.Equal(code, want)
}
