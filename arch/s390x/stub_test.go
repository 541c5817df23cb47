package s390x

import (
	"strings"
	"testing"

	"sdtconvert/arch"
)

func TestStubs(t *testing.T) {
	for _, c := range []struct {
		stub arch.Stub
		want string
	}{
		{arch.Stub{}, "br %r14"},
		{arch.Stub{Kind: arch.Enabled}, "lghi %r2,0; br %r14"},
		{arch.Stub{Kind: arch.Enabled, Thunk: "thunk"}, "lghi %r2,0; jg 0x4"},
		{arch.Stub{Kind: arch.Enabled, Semaphore: "semaphore"}, "llhrl %r2,0x0; br %r14"},
	} {
		var code []byte
		for _, i := range (Machine{}).Stub(c.stub) {
			code = append(code, i.Code...)
		}
		if got := strings.Join(Machine{}.Disassemble(code, 0), "; "); got != c.want {
			t.Errorf("%+v is %s, want %s", c.stub, got, c.want)
		}
	}
}
