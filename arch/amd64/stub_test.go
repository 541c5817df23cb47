package amd64

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
)

func TestStubs(t *testing.T) {
	for _, c := range []struct {
		stub arch.Stub
		code string
	}{
		{arch.Stub{}, "c3 cc"},
		{arch.Stub{Kind: arch.Enabled}, "31 c0 c3 cc"},
		{arch.Stub{LandingPad: true}, "f3 0f 1e fa c3 cc"},
		{arch.Stub{Kind: arch.Enabled, LandingPad: true, Thunk: "thunk"}, "f3 0f 1e fa 31 c0 e9 00 00 00 00"},
	} {
		var code []byte
		for _, i := range (Machine{}).Stub(c.stub) {
			code = append(code, i.Code...)
			if (i.Reloc != nil) != (i.Symbol != "") || i.Symbol != "" && i.Symbol != c.stub.Thunk {
				t.Errorf("%+v: %+v", c.stub, i)
			}
		}
		if diff := cmp.Diff(unhex(t, c.code), code); diff != "" {
			t.Errorf("%+v: %s", c.stub, diff)
		}
	}
}

func TestBranch(t *testing.T) {
	text := arch.Text{Code: unhex(t, "e9 fb ff ff ff e9 00 01 00 00 eb 00 e8 00 00 00 00 e9 00"), Start: 0x100}
	for record, want := range map[uint64]uint64{0x100: 0x100, 0x105: 0x20a, 0x10a: 0, 0x10c: 0x111, 0x111: 0, 0x200: 0} {
		if to, ok := (Machine{}).Branch(text, record); to != want || ok != (want != 0) {
			t.Errorf("%#x: %#x, %v, want %#x", record, to, ok, want)
		}
	}
}
