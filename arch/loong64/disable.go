package loong64

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
)

// The instructions of disabled forms, by their assembly.
var (
	nop  = []byte{0x00, 0x00, 0x40, 0x03} // nop
	ret  = []byte{0x20, 0x00, 0x00, 0x4c} // ret
	zero = []byte{0x04, 0x00, 0x15, 0x00} // move $a0, $zero
	b    = []byte{0x00, 0x00, 0x00, 0x50} // b helper
	bl   = []byte{0x00, 0x00, 0x00, 0x54} // bl helper
	// fill is behind what takes less than a pair. No compiler writes it, and it is not nop,
	// so that a pair is told from what only one instruction was in place of.
	fill = []byte{0x00, 0x00, 0x15, 0x00} // move $zero, $zero
)

// single are the forms of a site of one instruction, and pairs those of two.
var (
	single = [...][arch.Forms][]byte{
		arch.Probe:   {arch.Call: nop, arch.Tail: ret, arch.Nop: nop},
		arch.Enabled: {arch.Call: zero, arch.Tail: b},
	}
	pairs = [...][arch.Forms][]byte{
		arch.Probe:   {arch.Call: join(nop, fill), arch.Tail: join(ret, fill), arch.Nop: join(nop, fill)},
		arch.Enabled: {arch.Call: join(zero, fill), arch.Tail: join(zero, ret)},
	}
)

func join(first, second []byte) []byte { return bytes.Join([][]byte{first, second}, nil) }

// Disable writes the form of the site's kind and form. An is-enabled tail call of one
// instruction would need two, so it goes to the helper. Kernels execute or simulate all of
// them out of line when they arm them, so there are no armable ones.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	code := single[k][s.Form]
	if len(s.Code) == pairLen {
		code = pairs[k][s.Form]
	}
	switch {
	case code == nil && s.Form == arch.Nop:
		return arch.Change{}, arch.RefuseNop(k)
	case code == nil:
		return arch.Change{}, arch.Refuse("", "%s", arch.One(k, s.Form))
	case k == arch.Enabled && env.Semaphore != 0:
		return jump(s, arch.TargetTest), nil
	case k == arch.Enabled && s.Form == arch.Tail && len(s.Code) == insnLen:
		return jump(s, arch.TargetHelper), nil
	}
	return arch.Change{Site: s, New: bytes.Clone(code), Record: s.Offset}, nil
}

// jump has a site go elsewhere, as it went to the stub.
func jump(s arch.Site, to arch.Target) arch.Change {
	c := arch.Change{Site: s, New: bytes.Clone(s.Code), Record: s.Offset, Target: to}
	c.Reloc = arch.Reloc{Offset: s.Offset, Type: uint32(elf.R_LARCH_CALL36)}
	if len(s.Code) == insnLen {
		c.Reloc.Type = uint32(elf.R_LARCH_B26)
		c.New = bytes.Clone(b)
		if s.Form == arch.Call {
			c.New = bytes.Clone(bl)
		}
	}
	return c
}

// Disabled compares what is at a record with the forms of its kind, pairs first.
func (Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	for _, forms := range [][arch.Forms][]byte{pairs[k], single[k]} {
		for _, form := range []arch.Form{arch.Call, arch.Tail} {
			if code := t.At(record, len(forms[form])); bytes.Equal(code, forms[form]) {
				return arch.Site{Offset: record, Form: form, Code: code}, true
			}
		}
	}
	if k == arch.Enabled {
		return findTest(t, record)
	}
	return arch.Site{}, false
}
