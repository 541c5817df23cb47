package riscv64

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
)

func TestStubs(t *testing.T) {
	for kind, want := range map[arch.Kind][]string{arch.Probe: {"ret"}, arch.Enabled: {"li x10,0", "ret"}} {
		var code []byte
		for _, i := range (Machine{}).Stub(arch.Stub{Kind: kind}) {
			code = append(code, i.Code...)
		}
		if got := (Machine{}).Disassemble(code, 0); len(code) != 4*len(want) {
			t.Errorf("% x", code)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
