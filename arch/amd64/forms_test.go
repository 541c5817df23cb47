package amd64

import (
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

// form is one way to reach a stub through registers, and its disabled forms, in hex.
type form struct {
	name       string
	code       string
	asm        string
	form       arch.Form
	probe      string
	probeAsm   string
	armable    string // of a probe call too
	armableAsm string
	enabled    string
	enabledAsm string
}

// registerForms are those that Flow finds, but for calls of 5 bytes.
var registerForms = []form{
	{
		name: "call through a register", code: "ff d0", asm: "call *%rax", form: arch.Call,
		probe: "66 90", probeAsm: "data16 nop",
		armable: "90 90", armableAsm: "nop; nop",
		enabled: "31 c0", enabledAsm: "xor %eax,%eax",
	},
	{
		name: "call through a slot", code: "ff 14 01", asm: "callq *(%rcx,%rax)", form: arch.Call,
		probe: "0f 1f 00", probeAsm: "nopl (%rax)",
		armable: "90 66 90", armableAsm: "nop; data16 nop",
		enabled: "31 c0 90", enabledAsm: "xor %eax,%eax; nop",
	},
	{
		name: "call through a slot from r12", code: "41 ff 14 04", asm: "callq *(%r12,%rax)", form: arch.Call,
		probe: "0f 1f 40 00", probeAsm: "nopl (%rax)",
		armable: "90 0f 1f 00", armableAsm: "nop; nopl (%rax)",
		enabled: "31 c0 66 90", enabledAsm: "xor %eax,%eax; data16 nop",
	},
	{
		name: "tail call through a register", code: "ff e0", asm: "jmp *%rax", form: arch.Tail,
		probe: "c3 cc", probeAsm: "retq; int3",
		armable: "90 c3", armableAsm: "nop; retq",
	},
	{
		name: "tail call through a slot", code: "ff 24 01", asm: "jmpq *(%rcx,%rax)", form: arch.Tail,
		probe: "c3 cc cc", probeAsm: "retq; int3; int3",
		armable: "90 c3 cc", armableAsm: "nop; retq; int3",
		enabled: "31 c0 c3", enabledAsm: "xor %eax,%eax; retq",
	},
	{
		name: "tail call through a slot from r12", code: "41 ff 24 04", asm: "jmpq *(%r12,%rax)", form: arch.Tail,
		probe: "c3 cc cc cc", probeAsm: "retq; int3; int3; int3",
		armable: "90 c3 cc cc", armableAsm: "nop; retq; int3; int3",
		enabled: "31 c0 c3 cc", enabledAsm: "xor %eax,%eax; retq; int3",
	},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	return expect.Value(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}

// decodeAsm shows code as the decoder of golang.org/x/arch reads it.
func decodeAsm(t *testing.T, code []byte) string {
	t.Helper()
	var out []string
	for len(code) > 0 {
		inst := expect.Value(x86asm.Decode(code, 64))(t, "% x is not an instruction", code)
		out, code = append(out, x86asm.GNUSyntax(inst, 0, nil)), code[inst.Len:]
	}
	return strings.Join(out, "; ")
}

func TestDisabledFormsOfCallsThroughRegisters(t *testing.T) {
	for _, f := range registerForms {
		expect.Equal(t, f.asm, decodeAsm(t, unhex(t, f.code)), "the test's own code")
		for _, k := range []struct {
			kind      arch.Kind
			armable   bool
			want, asm string
		}{
			{arch.Probe, false, f.probe, f.probeAsm},
			{arch.Probe, true, f.armable, f.armableAsm},
			{arch.Enabled, false, f.enabled, f.enabledAsm},
			{arch.Enabled, true, f.enabled, f.enabledAsm},
		} {
			if k.want == "" {
				continue
			}
			site := arch.Site{Offset: 0x40, Form: f.form, Register: true, Code: unhex(t, f.code)}
			got := mustDisable(t, site, k.kind, arch.Context{Armable: k.armable})
			expect.Equal(t, arch.Change{Site: site, New: unhex(t, k.want), RecordedOffset: 0x40}, got, "%s", f.name)
			expect.Equal(t, k.asm, decodeAsm(t, got.New), "%s: the disabled form", f.name)
		}
	}
}
