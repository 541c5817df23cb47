package loong64

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
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
	padding = []byte{0x00, 0x00, 0x15, 0x00} // move $zero, $zero
)

// single are the forms of a site of one instruction, and pairs those of two.
var (
	single = forms.Table{
		arch.Probe:   {arch.Call: nop, arch.Tail: ret, arch.Nop: nop},
		arch.Enabled: {arch.Call: zero, arch.Tail: b},
	}
	pairs = forms.Table{
		arch.Probe:   {arch.Call: join(nop, padding), arch.Tail: join(ret, padding), arch.Nop: join(nop, padding)},
		arch.Enabled: {arch.Call: join(zero, padding), arch.Tail: join(zero, ret)},
	}
)

var mark = forms.Mark{Nops: [][]byte{join(nop, padding), nop}, Align: insnLen, Want: "a nop", Fix: "mark a nop"}

func join(first, second []byte) []byte { return bytes.Join([][]byte{first, second}, nil) }

// Disable writes the form of the site's kind and form. An is-enabled tail call of one
// instruction would need two, so it goes to the helper. Kernels execute or simulate all of
// them out of line when they arm them, so there are no armable ones.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	table := &single
	if len(s.Code) == pairLen {
		table = &pairs
	}
	code, err := table.Code(s, k)
	switch {
	case err != nil:
		return arch.Change{}, err
	case k == arch.Enabled && env.SemaphoreBytes != 0:
		return jump(s, arch.TargetTestHelper), nil
	case k == arch.Enabled && s.Form == arch.Tail && len(s.Code) == insnLen:
		return jump(s, arch.TargetHelper), nil
	}
	return arch.Change{Site: s, New: bytes.Clone(code), RecordedOffset: s.Offset}, nil
}

// jump makes a site go elsewhere, as it went to the stub.
func jump(s arch.Site, to arch.Target) arch.Change {
	c := arch.Change{Site: s, New: bytes.Clone(s.Code), RecordedOffset: s.Offset, Target: to}
	c.Reloc = elfreloc.Relocation{Offset: s.Offset, Type: uint32(elf.R_LARCH_CALL36)}
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
	for _, table := range []*forms.Table{&pairs, &single} {
		if site, ok := table.Find(t, record, k); ok {
			return site, true
		}
	}
	if k == arch.Enabled {
		return findTest(t, record)
	}
	return arch.Site{}, false
}
