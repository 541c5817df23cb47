package arm64

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
)

// DisableDOF gives the usual forms, nop and ret for probes, which are those of dtrace -G.
// That makes a nop of a test, too, and leaves its result to chance; no kernel arms one on
// arm64, so tests are false here.
func (m Machine) DisableDOF(s arch.Site, k arch.Kind) (arch.Change, error) {
	if s.Form == arch.Nop {
		return arch.Change{}, arch.RefuseSite(k, s.Form, "call the stub", ", which DTrace has no form for")
	}
	return m.Disable(s, k, arch.Context{})
}

// DisabledDOF compares the word at the field, which is all of a site.
func (Machine) DisabledDOF(t arch.Text, field uint64, k arch.Kind) (arch.Site, bool) {
	code := t.At(field, insnLen)
	for _, form := range []arch.Form{arch.Call, arch.Tail} {
		if want := table[k][form]; !isBranch(want) && bytes.Equal(code, want) {
			return arch.Site{Offset: field, Form: form, Code: code}, true
		}
	}
	return arch.Site{}, false
}

// RecordedDOF knows those of probe calls, as nothing is told of tests.
func (m Machine) RecordedDOF(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	if k != arch.Probe {
		return arch.Site{}, false
	}
	return m.DisabledDOF(t, record, k)
}

var traitsDOF = arch.DOF{Distance: uint32(elf.R_AARCH64_PREL64)}
