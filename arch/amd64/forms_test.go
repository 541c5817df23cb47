package amd64

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// form is one way to reach a stub and its disabled forms. Code is in hex, with
// the relocated field as zeros.
type form struct {
	name         string
	typ          elf.R_X86_64
	code         string
	asm          string
	form         arch.Form
	got          bool
	register     bool
	probe        string
	probeAsm     string
	armable      string // of a probe call too
	armableAsm   string
	enabled      string
	enabledAsm   string
	probeRecord  uint64 // from the site's first byte
	enableRecord uint64
}

var forms = []form{
	{
		name: "call", typ: elf.R_X86_64_PLT32,
		code: "e8 00 00 00 00", asm: "callq .+0x5", form: arch.Call,
		probe: "0f 1f 44 00 00", probeAsm: "nopl (%rax,%rax)",
		armable: "90 0f 1f 40 00", armableAsm: "nop; nopl (%rax)",
		enabled: "31 c0 0f 1f 00", enabledAsm: "xor %eax,%eax; nopl (%rax)",
	},
	{
		name: "call of before PLT32", typ: elf.R_X86_64_PC32,
		code: "e8 00 00 00 00", asm: "callq .+0x5", form: arch.Call,
		probe: "0f 1f 44 00 00", probeAsm: "nopl (%rax,%rax)",
		armable: "90 0f 1f 40 00", armableAsm: "nop; nopl (%rax)",
		enabled: "31 c0 0f 1f 00", enabledAsm: "xor %eax,%eax; nopl (%rax)",
	},
	{
		name: "tail call", typ: elf.R_X86_64_PLT32,
		code: "e9 00 00 00 00", asm: "jmpq .+0x5", form: arch.Tail,
		probe: "c3 cc cc cc cc", probeAsm: "retq; int3; int3; int3; int3",
		armable: "90 c3 cc cc cc", armableAsm: "nop; retq; int3; int3; int3",
		enabled: "31 c0 c3 cc cc", enabledAsm: "xor %eax,%eax; retq; int3; int3",
	},
	{
		name: "call through the GOT", typ: elf.R_X86_64_GOTPCRELX,
		code: "ff 15 00 00 00 00", asm: "callq *(%rip)", form: arch.Call, got: true,
		probe: "66 0f 1f 44 00 00", probeAsm: "nopw (%rax,%rax)",
		armable: "90 0f 1f 44 00 00", armableAsm: "nop; nopl (%rax,%rax)",
		enabled: "31 c0 0f 1f 40 00", enabledAsm: "xor %eax,%eax; nopl (%rax)",
	},
	{
		name: "call through the GOT that is not to be relaxed", typ: elf.R_X86_64_GOTPCREL,
		code: "ff 15 00 00 00 00", asm: "callq *(%rip)", form: arch.Call, got: true,
		probe: "66 0f 1f 44 00 00", probeAsm: "nopw (%rax,%rax)",
		armable: "90 0f 1f 44 00 00", armableAsm: "nop; nopl (%rax,%rax)",
		enabled: "31 c0 0f 1f 40 00", enabledAsm: "xor %eax,%eax; nopl (%rax)",
	},
	{
		name: "tail call through the GOT", typ: elf.R_X86_64_GOTPCRELX,
		code: "ff 25 00 00 00 00", asm: "jmpq *(%rip)", form: arch.Tail, got: true,
		probe: "c3 cc cc cc cc cc", probeAsm: "retq; int3; int3; int3; int3; int3",
		armable: "90 c3 cc cc cc cc", armableAsm: "nop; retq; int3; int3; int3; int3",
		enabled: "31 c0 c3 cc cc cc", enabledAsm: "xor %eax,%eax; retq; int3; int3; int3",
	},
}

// registerForms are those that Flow finds, but for calls of 5 bytes.
var registerForms = []form{
	{
		name: "call through a register", code: "ff d0", asm: "call *%rax", form: arch.Call, register: true,
		probe: "66 90", probeAsm: "data16 nop",
		armable: "90 90", armableAsm: "nop; nop",
		enabled: "31 c0", enabledAsm: "xor %eax,%eax",
	},
	{
		name: "call through a slot", code: "ff 14 01", asm: "callq *(%rcx,%rax)", form: arch.Call, register: true,
		probe: "0f 1f 00", probeAsm: "nopl (%rax)",
		armable: "90 66 90", armableAsm: "nop; data16 nop",
		enabled: "31 c0 90", enabledAsm: "xor %eax,%eax; nop",
	},
	{
		name: "call through a slot from r12", code: "41 ff 14 04", asm: "callq *(%r12,%rax)", form: arch.Call, register: true,
		probe: "0f 1f 40 00", probeAsm: "nopl (%rax)",
		armable: "90 0f 1f 00", armableAsm: "nop; nopl (%rax)",
		enabled: "31 c0 66 90", enabledAsm: "xor %eax,%eax; data16 nop",
	},
	{
		name: "tail call through a register", code: "ff e0", asm: "jmp *%rax", form: arch.Tail, register: true,
		probe: "c3 cc", probeAsm: "retq; int3",
		armable: "90 c3", armableAsm: "nop; retq",
	},
	{
		name: "tail call through a slot", code: "ff 24 01", asm: "jmpq *(%rcx,%rax)", form: arch.Tail, register: true,
		probe: "c3 cc cc", probeAsm: "retq; int3; int3",
		armable: "90 c3 cc", armableAsm: "nop; retq; int3",
		enabled: "31 c0 c3", enabledAsm: "xor %eax,%eax; retq",
	},
	{
		name: "tail call through a slot from r12", code: "41 ff 24 04", asm: "jmpq *(%r12,%rax)", form: arch.Tail, register: true,
		probe: "c3 cc cc cc", probeAsm: "retq; int3; int3; int3",
		armable: "90 c3 cc cc", armableAsm: "nop; retq; int3; int3",
		enabled: "31 c0 c3 cc", enabledAsm: "xor %eax,%eax; retq; int3",
	},
}

// conditions holds the condition that inverts each, in the order of encoding.
var conditions = []struct{ cc, inverse string }{
	{"o", "no"}, {"no", "o"}, {"b", "ae"}, {"ae", "b"}, {"e", "ne"}, {"ne", "e"}, {"be", "a"}, {"a", "be"},
	{"s", "ns"}, {"ns", "s"}, {"p", "np"}, {"np", "p"}, {"l", "ge"}, {"ge", "l"}, {"le", "g"}, {"g", "le"},
}

// allForms adds the conditional tail calls of all conditions.
func allForms() []form {
	all := slices.Concat(forms, registerForms)
	for i, c := range conditions {
		inverse := 0x70 | i ^ 1
		all = append(all, form{
			name: "conditional tail call j" + c.cc, typ: elf.R_X86_64_PLT32,
			code: fmt.Sprintf("0f %02x 00 00 00 00", 0x80|i), asm: "j" + c.cc + " .+0x6", form: arch.CondTail,
			probe: fmt.Sprintf("%02x 01 c3 0f 1f 00", inverse), probeAsm: "j" + c.inverse + " .+0x3; retq; nopl (%rax)", probeRecord: 2,
			armable: fmt.Sprintf("%02x 02 90 c3 66 90", inverse), armableAsm: "j" + c.inverse + " .+0x4; nop; retq; data16 nop",
			enabled: fmt.Sprintf("%02x 04 31 c0 c3 cc", inverse), enabledAsm: "j" + c.inverse + " .+0x6; xor %eax,%eax; retq; int3", enableRecord: 2,
		})
	}
	return all
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decodeAsm shows code as the decoder of golang.org/x/arch reads it, with jumps
// relative to their own start.
func decodeAsm(t *testing.T, code []byte) string {
	t.Helper()
	var out []string
	for len(code) > 0 {
		inst, err := x86asm.Decode(code, 64)
		if err != nil {
			t.Fatalf("% x is not an instruction: %v", code, err)
		}
		out = append(out, x86asm.GNUSyntax(inst, 0, nil))
		if rel, ok := inst.Args[0].(x86asm.Rel); ok {
			name, _, _ := strings.Cut(out[len(out)-1], " ")
			out[len(out)-1] = fmt.Sprintf("%s .+%#x", name, int(rel)+inst.Len)
		}
		code = code[inst.Len:]
	}
	return strings.Join(out, "; ")
}

// siteText puts code between other instructions, which must not matter.
func siteText(code []byte) (text arch.Text, off uint64) {
	const start = 0x100
	before := []byte{0x48, 0x89, 0xe5, 0xe8, 0xff, 0x15, 0x0f, 0x90} // mov; and bytes that look like calls
	after := []byte{0xcc, 0xc3, 0x0f, 0x85}
	return arch.Text{Code: bytes.Join([][]byte{before, code, after}, nil), Start: start}, start + uint64(len(before))
}

func (f form) relocs(code []byte, off uint64) []arch.Reloc {
	return []arch.Reloc{{Offset: off + uint64(len(code)) - 4, Type: uint32(f.typ), Addend: -4}}
}

func TestDecodeFindsTheSite(t *testing.T) {
	for _, f := range allForms() {
		if f.register {
			continue // which Flow finds
		}
		t.Run(f.name, func(t *testing.T) {
			code := unhex(t, f.code)
			if got := decodeAsm(t, code); got != f.asm {
				t.Fatalf("the test's own code is %s, want %s", got, f.asm)
			}
			text, off := siteText(code)
			got, err := Machine{}.Decode(text, f.relocs(code, off))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(arch.Site{Offset: off, Form: f.form, GOT: f.got, Code: code}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDisabledFormByteForByte(t *testing.T) {
	for _, f := range allForms() {
		if got := decodeAsm(t, unhex(t, f.code)); got != f.asm {
			t.Errorf("the test's own code is %s, want %s", got, f.asm)
		}
		for _, k := range []struct {
			kind      arch.Kind
			armable   bool
			want, asm string
			record    uint64
		}{
			{arch.Probe, false, f.probe, f.probeAsm, f.probeRecord},
			{arch.Probe, true, f.armable, f.armableAsm, f.probeRecord},
			{arch.Enabled, false, f.enabled, f.enabledAsm, f.enableRecord},
			{arch.Enabled, true, f.enabled, f.enabledAsm, f.enableRecord},
		} {
			if k.want == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s %s armable %v", f.name, arch.Describe(k.kind, f.form), k.armable), func(t *testing.T) {
				site := arch.Site{Offset: 0x40, Form: f.form, GOT: f.got, Register: f.register, Code: unhex(t, f.code)}
				got, err := Machine{}.Disable(site, k.kind, arch.Env{Armable: k.armable})
				if err != nil {
					t.Fatal(err)
				}
				want := arch.Change{Site: site, New: unhex(t, k.want), Record: 0x40 + k.record}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if asm := decodeAsm(t, got.New); asm != k.asm {
					t.Errorf("the disabled form is %s, want %s", asm, k.asm)
				}
			})
		}
	}
}
