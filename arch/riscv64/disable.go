package riscv64

import (
	"bytes"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
)

// The disabled forms, by their assembly. They are of 4-byte instructions, so
// that code keeps its length and alignment without the C extension.
var table = forms.Table{
	arch.Probe: {
		arch.Call: {0x13, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00, 0x00}, // nop; nop
		arch.Tail: {0x67, 0x80, 0x00, 0x00, 0x13, 0x00, 0x00, 0x00}, // ret; nop
		arch.Nop:  {0x13, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00, 0x00}, // nop; nop
	},
	arch.Enabled: {
		arch.Call: {0x13, 0x05, 0x00, 0x00, 0x13, 0x00, 0x00, 0x00}, // li a0, 0; nop
		arch.Tail: {0x13, 0x05, 0x00, 0x00, 0x67, 0x80, 0x00, 0x00}, // li a0, 0; ret
	},
}

var mark = forms.Mark{
	Nops: [][]byte{table[arch.Probe][arch.Nop]}, Align: 1,
	Want: "two nops", Fix: "mark the first of two nops, with .option norvc",
}

// Disable writes the pair of the site's kind and form.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	code, err := table.Code(s, k)
	if err != nil {
		return arch.Change{}, err
	}
	if k == arch.Enabled && env.SemaphoreBytes != 0 {
		return test(s), nil
	}
	return arch.Change{Site: s, New: bytes.Clone(code), RecordedOffset: s.Offset}, nil
}

// Disabled compares the pair at a record with the forms of its kind.
func (Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	site, ok := table.Find(t, record, k)
	if !ok && k == arch.Enabled {
		return findTest(t, record)
	}
	return site, ok
}
