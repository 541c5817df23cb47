package riscv64

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/riscv64/riscv64asm"

	"sdtconvert/arch"
)

func words(insns ...uint32) []byte {
	var b []byte
	for _, i := range insns {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	return b
}

// decodeAsm shows code as the decoder of golang.org/x/arch reads it.
func decodeAsm(t *testing.T, code []byte) string {
	t.Helper()
	var out []string
	for len(code) > 0 {
		inst, err := riscv64asm.Decode(code)
		if err != nil {
			t.Fatalf("% x is not an instruction: %v", code, err)
		}
		out = append(out, riscv64asm.GNUSyntax(inst))
		code = code[inst.Len:]
	}
	return strings.Join(out, "; ")
}

// auipc ra, 0; jalr ra and auipc t1, 0; jr t1: what call and tail expand to.
var callCode, tailCode = words(0x00000097, 0x000080e7), words(0x00000317, 0x00030067)

var cases = []struct {
	name    string
	typ     elf.R_RISCV
	code    []byte
	asm     string
	form    arch.Form
	probe   []byte
	probeIs string
	test    []byte
	testIs  string
}{
	{"call", elf.R_RISCV_CALL_PLT, callCode, "auipc x1,0x0; jalr x1", arch.Call,
		words(0x00000013, 0x00000013), "nop; nop", words(0x00000513, 0x00000013), "li x10,0; nop"},
	{"tail call", elf.R_RISCV_CALL_PLT, tailCode, "auipc x6,0x0; jr x6", arch.Tail,
		words(0x00008067, 0x00000013), "ret; nop", words(0x00000513, 0x00008067), "li x10,0; ret"},
	{"call of before CALL_PLT", elf.R_RISCV_CALL, callCode, "auipc x1,0x0; jalr x1", arch.Call,
		words(0x00000013, 0x00000013), "nop; nop", words(0x00000513, 0x00000013), "li x10,0; nop"},
	{"tail call through t2", elf.R_RISCV_CALL_PLT, words(0x00000397, 0x00038067), "auipc x7,0x0; jr x7", arch.Tail,
		words(0x00008067, 0x00000013), "ret; nop", words(0x00000513, 0x00008067), "li x10,0; ret"},
}

func TestDecodeFindsTheSite(t *testing.T) {
	for _, f := range cases {
		for _, relax := range []bool{false, true} {
			if asm := decodeAsm(t, f.code); asm != f.asm {
				t.Fatalf("the test's own code is %s, want %s", asm, f.asm)
			}
			relocs := []arch.Reloc{{Offset: 0x102, Type: uint32(f.typ)}}
			if relax {
				relocs = append(relocs, arch.Reloc{Offset: 0x102, Type: uint32(elf.R_RISCV_RELAX)})
			}
			// Behind a compressed instruction, so at 2 modulo 4.
			text := arch.Text{Code: append([]byte{0x01, 0x00}, append(f.code, 0x82, 0x80)...), Start: 0x100}
			got, err := Machine{}.Decode(text, relocs)
			if err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			if diff := cmp.Diff(arch.Site{Offset: 0x102, Form: f.form, Code: f.code}, got); diff != "" {
				t.Errorf("%s: %s", f.name, diff)
			}
		}
	}
}

func TestDisabledFormByteForByte(t *testing.T) {
	for _, f := range cases {
		for _, k := range []struct {
			kind arch.Kind
			want []byte
			asm  string
		}{{arch.Probe, f.probe, f.probeIs}, {arch.Enabled, f.test, f.testIs}} {
			t.Run(f.name+" "+arch.Describe(k.kind, f.form), func(t *testing.T) {
				site := arch.Site{Offset: 0x40, Form: f.form, Code: f.code}
				got, err := Machine{}.Disable(site, k.kind, arch.Env{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(arch.Change{Site: site, New: k.want, Record: 0x40}, got); diff != "" {
					t.Error(diff)
				}
				if asm := decodeAsm(t, got.New); asm != k.asm {
					t.Errorf("the disabled form is %s, want %s", asm, k.asm)
				}
				back, ok := Machine{}.Disabled(arch.Text{Code: got.New, Start: 0x40}, 0x40, k.kind)
				if diff := cmp.Diff(arch.Site{Offset: 0x40, Form: f.form, Code: k.want}, back); !ok || diff != "" {
					t.Errorf("read back: %v %s", ok, diff)
				}
				if _, ok := (Machine{}).Disabled(arch.Text{Code: got.New, Start: 0x40}, 0x40, 1-k.kind); ok {
					t.Error("taken for the other kind")
				}
			})
		}
	}
}

func TestDecodeRefusesWhatIsNoCall(t *testing.T) {
	const direct = "; call the stub directly, and do not take its address"
	const jal = "got a jal to the stub, too short for its disabled form; use the call or tail pseudoinstruction"
	const branch = "got a conditional branch to the stub; branch around a tail pseudoinstruction instead"
	const address = "got an absolute address; compile without -mcmodel=large" + direct
	for _, c := range []struct {
		name string
		typ  elf.R_RISCV
		code []byte
		add  int64
		want string
	}{
		{"jal", elf.R_RISCV_JAL, callCode, 0, jal},
		{"c.j", elf.R_RISCV_RVC_JUMP, callCode, 0, jal},
		{"beqz", elf.R_RISCV_BRANCH, callCode, 0, branch},
		{"c.beqz", elf.R_RISCV_RVC_BRANCH, callCode, 0, branch},
		{"GOT", elf.R_RISCV_GOT_HI20, callCode, 0, "got a load of the stub's address from the GOT; compile without -mno-plt, and do not take the stub's address"},
		{"address", elf.R_RISCV_64, callCode, 0, address},
		{"short address", elf.R_RISCV_32, callCode, 0, address},
		{"lui", elf.R_RISCV_HI20, callCode, 0, "got no call and no jump" + direct},
		{"nops", elf.R_RISCV_CALL_PLT, words(0x13, 0x13), 0, "got no auipc and jalr but instructions 00000013 00000013" + direct},
		{"two registers", elf.R_RISCV_CALL_PLT, words(0x00000097, 0x000300e7), 0, "got no auipc and jalr but instructions 00000097 000300e7" + direct},
		{"link through t0", elf.R_RISCV_CALL_PLT, words(0x00000297, 0x000282e7), 0, "got a call that links through x5; use the call or tail pseudoinstruction"},
		{"behind the stub", elf.R_RISCV_CALL_PLT, callCode, 4, "got a call or jump to the stub+4" + direct},
		{"cut off", elf.R_RISCV_CALL_PLT, callCode[:6], 0, "got a call that the section's end cuts off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Machine{}.Decode(arch.Text{Code: c.code}, []arch.Reloc{{Type: uint32(c.typ), Addend: c.add}})
			wantRefusal(t, err, c.want)
		})
	}
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*arch.Refusal)) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestDecodeRefusesASecondRelocation(t *testing.T) {
	relocs := []arch.Reloc{{Type: uint32(elf.R_RISCV_CALL_PLT)}, {Type: uint32(elf.R_RISCV_RELAX)}, {Type: uint32(elf.R_RISCV_64)}}
	_, err := Machine{}.Decode(arch.Text{Code: callCode}, relocs)
	wantRefusal(t, err, "got a second relocation, R_RISCV_64, at the same place")
}

func TestDisableRefusals(t *testing.T) {
	_, err := Machine{}.Disable(arch.Site{Form: arch.CondTail, Code: callCode}, arch.Probe, arch.Env{})
	wantRefusal(t, err, "got a cond-tail")
}

func TestDisabledIsNothingElse(t *testing.T) {
	for k := range arch.Kinds {
		for _, code := range [][]byte{callCode, tailCode, words(0x00000013), words(0x00000013, 0x00000013)[:7], words(0x00000013, 0x00008067), nil} {
			jumps := k == arch.Enabled && bytes.Equal(code, tailCode) // to a helper
			if got, ok := (Machine{}).Disabled(arch.Text{Code: code}, 0, k); ok != jumps {
				t.Errorf("% x is taken for %s", code, arch.Describe(k, got.Form))
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []byte{0x13, 0x00, 0x67, 0x80, 0x05}
	known := map[string]bool{}
	for _, f := range cases {
		known[string(f.probe)], known[string(f.test)] = true, true
	}
	for range 300_000 {
		code := make([]byte, r.IntN(10))
		for i := range code {
			code[i] = alphabet[r.IntN(len(alphabet))]
		}
		if got, ok := (Machine{}).Disabled(arch.Text{Code: code}, uint64(r.IntN(3)), arch.Kind(r.IntN(2))); ok && !known[string(got.Code)] {
			t.Fatalf("% x is taken for a disabled site", code)
		}
	}
}
