package riscv64

import (
	"bytes"

	"sdtconvert/arch"
)

// The disabled forms, by their assembly. They are of 4-byte instructions, so
// that code keeps its length and alignment without the C extension.
var forms = [...][arch.Forms][]byte{
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

// Disable writes the pair of the site's kind and form.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	code := forms[k][s.Form]
	switch {
	case code == nil && s.Form == arch.Nop:
		return arch.Change{}, arch.RefuseNop(k)
	case code == nil:
		return arch.Change{}, arch.Refuse("", "%s", arch.One(k, s.Form))
	case k == arch.Enabled && env.Semaphore != 0:
		return test(s), nil
	}
	return arch.Change{Site: s, New: bytes.Clone(code), Record: s.Offset}, nil
}

// Disabled compares the pair at a record with the forms of its kind.
func (Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	code := t.At(record, pairLen)
	for _, form := range []arch.Form{arch.Call, arch.Tail} {
		if bytes.Equal(code, forms[k][form]) {
			return arch.Site{Offset: record, Form: form, Code: code}, true
		}
	}
	if k == arch.Enabled && code != nil {
		return findTest(t, record)
	}
	return arch.Site{}, false
}
