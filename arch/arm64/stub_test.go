package arm64

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
)

func TestStubs(t *testing.T) {
	for _, c := range []struct {
		stub arch.Stub
		want []string
	}{
		{arch.Stub{}, []string{"ret"}},
		{arch.Stub{Kind: arch.Enabled}, []string{"mov w0, #0x0", "ret"}},
		{arch.Stub{LandingPad: true}, []string{"hint #0x22", "ret"}},
	} {
		var code []byte
		for _, i := range (Machine{}).Stub(c.stub) {
			code = append(code, i.Code...)
		}
		if diff := cmp.Diff(c.want, (Machine{}).Disassemble(code, 0)); diff != "" {
			t.Errorf("%+v: %s", c.stub, diff)
		}
	}
}

func TestBranch(t *testing.T) {
	text := arch.Text{Code: words(0x14000002, 0x17ffffff, 0x94000001, 0xd65f03c0), Start: 0x100}
	for record, want := range map[uint64]uint64{0x100: 0x108, 0x104: 0x100, 0x108: 0x10c, 0x10c: 0, 0x110: 0} {
		if to, ok := (Machine{}).Branch(text, record); to != want || ok != (want != 0) {
			t.Errorf("%#x: %#x, %v, want %#x", record, to, ok, want)
		}
	}
}
