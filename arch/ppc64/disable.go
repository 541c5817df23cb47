package ppc64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// The disabled forms, by their assembly.
const (
	insnNop  = 0x60000000 // ori r0, r0, 0
	insnRet  = 0x4e800020 // blr
	insnZero = 0x38600000 // li r3, 0
	insnB    = 0x48000000 // b helper
	insnBL   = 0x48000001 // bl helper
)

// Disable writes the instruction of the site's kind and form. A tail test has no room to
// return and to set a result: it goes to a helper.
func (m Machine) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	c := arch.Change{Site: s, RecordedOffset: s.Offset}
	switch {
	case k == arch.Enabled && s.Form == arch.Nop:
		return arch.Change{}, arch.RefuseNop(k)
	case k == arch.Enabled && env.SemaphoreBytes != 0:
		return m.helped(s, env, arch.TargetTestHelper), nil
	case k == arch.Enabled && s.Form == arch.Tail:
		return m.helped(s, env, arch.TargetHelper), nil
	case k == arch.Enabled:
		c.New = m.code(insnZero)
	case s.Form == arch.Tail:
		c.New = m.code(insnRet)
	default:
		c.New = m.code(insnNop)
	}
	return c, nil
}

// helped makes a site go to a helper, as it went to the stub, and by the same relocation:
// it tells linkers whether code that goes far may use the table of contents.
func (m Machine) helped(s arch.Site, env arch.Context, to arch.Target) arch.Change {
	insn := uint32(insnBL)
	if s.Form == arch.Tail {
		insn = insnB
	}
	c := arch.Change{Site: s, New: m.code(insn), RecordedOffset: s.Offset, Target: to}
	c.Reloc = elfreloc.Relocation{Offset: s.Offset, Type: env.Reloc}
	if c.Reloc.Type == uint32(elf.R_PPC64_NONE) {
		c.Reloc.Type = uint32(elf.R_PPC64_REL24)
	}
	return c
}

// Disabled compares the instruction at a record with the forms of its kind.
func (m Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	code := t.At(record, insnLen)
	if code == nil {
		return arch.Site{}, false
	}
	insn := m.insn(code)
	form := arch.Call
	switch {
	case k == arch.Probe && insn == insnNop, k == arch.Enabled && insn == insnZero:
	case k == arch.Probe && insn == insnRet:
		form = arch.Tail
	case k == arch.Enabled && opcode(insn) == opB && insn&absoluteBit == 0:
		if insn&linkBit == 0 {
			form = arch.Tail
		}
	default:
		return arch.Site{}, false
	}
	return arch.Site{Offset: record, Form: form, Code: code}, true
}
