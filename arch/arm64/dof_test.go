package arm64

import (
	"bytes"
	"testing"

	"sdtconvert/arch"
)

func TestDOFForms(t *testing.T) {
	for _, c := range []struct {
		form arch.Form
		kind arch.Kind
		want []byte // nil for none
	}{
		{arch.Call, arch.Probe, nop}, {arch.Tail, arch.Probe, ret}, {arch.Call, arch.Enabled, zero},
		{arch.Tail, arch.Enabled, b}, {arch.Nop, arch.Probe, nil},
	} {
		target := arch.TargetNone
		if bytes.Equal(c.want, b) {
			target = arch.TargetHelper
		}
		got, err := Machine{}.DisableDOF(arch.Site{Offset: 16, Form: c.form, Code: bl}, c.kind)
		if (err != nil) != (c.want == nil) || !bytes.Equal(got.New, c.want) || err == nil && (got.RecordedOffset != 16 || got.Target != target) {
			t.Errorf("%s: % x, recorded at %d, %v", arch.Describe(c.kind, c.form), got.New, got.RecordedOffset, err)
		}
	}
}
