package arm64

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

// The disabled forms, by their assembly.
var (
	nop   = []byte{0x1f, 0x20, 0x03, 0xd5} // nop
	ret   = []byte{0xc0, 0x03, 0x5f, 0xd6} // ret
	zero  = []byte{0x00, 0x00, 0x80, 0x52} // mov w0, #0
	b     = []byte{0x00, 0x00, 0x00, 0x14} // b helper
	table = forms.Table{
		arch.Probe:   {arch.Call: nop, arch.Tail: ret, arch.Nop: nop},
		arch.Enabled: {arch.Call: zero, arch.Tail: b},
	}
)

var mark = forms.Mark{Nops: [][]byte{nop}, Align: insnLen, Want: "a nop", Fix: "mark a nop"}

// Disable writes the one instruction of the site's kind and form. An is-enabled
// tail call would need two, so it goes to the helper.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	code, err := table.Code(s, k)
	if err != nil {
		return arch.Change{}, err
	}
	if k == arch.Enabled && env.SemaphoreBytes != 0 {
		return test(s), nil
	}
	c := arch.Change{Site: s, New: bytes.Clone(code), RecordedOffset: s.Offset}
	if k == arch.Enabled && s.Form == arch.Tail {
		c.Target = arch.TargetHelper
		c.Reloc = elfreloc.Relocation{Offset: s.Offset, Type: uint32(elf.R_AARCH64_JUMP26)}
	}
	return c, nil
}

// Disabled compares the word at a record with the forms of its kind.
func (Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	code := t.At(record, insnLen)
	switch {
	case code == nil:
	case k == arch.Enabled && isLink(code):
		return arch.Site{Offset: record, Form: arch.Call, Code: code}, true
	case k == arch.Enabled && isBranch(code):
		return arch.Site{Offset: record, Form: arch.Tail, Code: code}, true
	}
	return table.Find(t, record, k)
}

// isBranch reports whether code is a b to anywhere: linkers fill in the
// distance to the helper.
func isBranch(code []byte) bool { return code[3]>>2 == opB>>26 }
