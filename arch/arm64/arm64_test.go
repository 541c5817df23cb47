package arm64

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/arm64/arm64asm"

	"sdtconvert/arch"
)

// words writes instructions, which are little-endian whatever the object is.
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
	if len(code)%4 != 0 {
		t.Fatalf("% x is not a whole number of instructions", code)
	}
	var out []string
	for ; len(code) > 0; code = code[4:] {
		inst, err := arm64asm.Decode(code)
		if err != nil {
			t.Fatalf("% x is not an instruction: %v", code[:4], err)
		}
		out = append(out, strings.TrimSpace(arm64asm.GNUSyntax(inst)))
	}
	return strings.Join(out, "; ")
}

var cases = []struct {
	name    string
	typ     elf.R_AARCH64
	code    uint32
	asm     string
	form    arch.Form
	probe   uint32
	probeIs string
	test    uint32
	testIs  string
}{
	{"call", elf.R_AARCH64_CALL26, 0x94000000, "bl .+0x0", arch.Call, 0xd503201f, "nop", 0x52800000, "mov w0, #0x0"},
	{"tail call", elf.R_AARCH64_JUMP26, 0x14000000, "b .+0x0", arch.Tail, 0xd65f03c0, "ret", 0x14000000, "b .+0x0"},
	{"call with a distance", elf.R_AARCH64_CALL26, 0x97ffffff, "bl .+0xfffffffffffffffc", arch.Call, 0xd503201f, "nop", 0x52800000, "mov w0, #0x0"},
}

func TestDecodeFindsTheSite(t *testing.T) {
	for _, f := range cases {
		t.Run(f.name, func(t *testing.T) {
			if asm := decodeAsm(t, words(f.code)); asm != f.asm {
				t.Fatalf("the test's own code is %s, want %s", asm, f.asm)
			}
			text := arch.Text{Code: words(0x94000000, f.code, 0x14000000), Start: 0x100}
			got, err := Machine{}.Decode(text, []arch.Reloc{{Offset: 0x104, Type: uint32(f.typ)}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(arch.Site{Offset: 0x104, Form: f.form, Code: words(f.code)}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDisabledFormByteForByte(t *testing.T) {
	for _, f := range cases {
		for _, k := range []struct {
			kind arch.Kind
			want uint32
			asm  string
		}{{arch.Probe, f.probe, f.probeIs}, {arch.Enabled, f.test, f.testIs}} {
			t.Run(f.name+" "+arch.Describe(k.kind, f.form), func(t *testing.T) {
				site := arch.Site{Offset: 0x40, Form: f.form, Code: words(f.code)}
				got, err := Machine{}.Disable(site, k.kind, arch.Env{})
				if err != nil {
					t.Fatal(err)
				}
				want := arch.Change{Site: site, New: words(k.want), Record: 0x40}
				if k.kind == arch.Enabled && f.form == arch.Tail {
					want.Target, want.Reloc = arch.TargetHelper, arch.Reloc{Offset: 0x40, Type: uint32(elf.R_AARCH64_JUMP26)}
				}
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

func TestHelperReturnsZero(t *testing.T) {
	h := Machine{}.Stub(arch.Stub{Kind: arch.Enabled})
	want := []arch.Insn{{Code: words(0x52800000), Text: "mov w0, #0"}, {Code: words(0xd65f03c0), Text: "ret"}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	if asm := decodeAsm(t, append(h[0].Code[:4:4], h[1].Code...)); asm != "mov w0, #0x0; ret" {
		t.Error(asm)
	}
}

func TestDecodeRefusesWhatIsNoBranch(t *testing.T) {
	const direct = "; call the stub directly, and do not take its address"
	const got = "got a load of the stub's address from the GOT; compile without -fno-plt, and do not take the stub's address"
	const cond = "got a conditional branch to the stub; branch around an unconditional b instead"
	for _, c := range []struct {
		name string
		typ  elf.R_AARCH64
		off  uint64
		code uint32
		add  int64
		want string
	}{
		{"b.eq", elf.R_AARCH64_CONDBR19, 0, 0x54000000, 0, cond},
		{"tbz", elf.R_AARCH64_TSTBR14, 0, 0x36180000, 0, cond},
		{"adrp of the GOT", elf.R_AARCH64_ADR_GOT_PAGE, 0, 0x90000000, 0, got},
		{"ldr of the GOT", elf.R_AARCH64_LD64_GOT_LO12_NC, 0, 0xf9400000, 0, got},
		{"adrp", elf.R_AARCH64_ADR_PREL_PG_HI21, 0, 0x90000000, 0, "got no call and no jump" + direct},
		{"address", elf.R_AARCH64_ABS64, 0, 0, 0, "got no call and no jump" + direct},
		{"nop", elf.R_AARCH64_CALL26, 0, 0xd503201f, 0, "got no bl and no b but instruction d503201f" + direct},
		{"blr", elf.R_AARCH64_CALL26, 0, 0xd63f0000, 0, "got no bl and no b but instruction d63f0000" + direct},
		{"behind the stub", elf.R_AARCH64_CALL26, 0, 0x94000000, 4, "got a branch to the stub+4" + direct},
		{"before the stub", elf.R_AARCH64_JUMP26, 0, 0x14000000, -8, "got a branch to the stub-8" + direct},
		{"cut off", elf.R_AARCH64_CALL26, 1, 0x94000000, 0, "got a branch that the section's end cuts off"},
		{"far away", elf.R_AARCH64_CALL26, ^uint64(0), 0x94000000, 0, "got a branch that the section's end cuts off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := arch.Reloc{Offset: c.off, Type: uint32(c.typ), Addend: c.add}
			_, err := Machine{}.Decode(arch.Text{Code: words(c.code)}, []arch.Reloc{r})
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

func TestDecodeRefusesAnUnalignedBranch(t *testing.T) {
	code := append([]byte{0, 0}, words(0x94000000, 0)...)
	_, err := Machine{}.Decode(arch.Text{Code: code}, []arch.Reloc{{Offset: 2, Type: uint32(elf.R_AARCH64_CALL26)}})
	wantRefusal(t, err, "got a branch that is not aligned")
}

func TestDecodeRefusesASecondRelocation(t *testing.T) {
	r := arch.Reloc{Type: uint32(elf.R_AARCH64_CALL26)}
	_, err := Machine{}.Decode(arch.Text{Code: words(0x94000000)}, []arch.Reloc{r, r})
	wantRefusal(t, err, "got a second relocation, R_AARCH64_CALL26, at the same place")
}

func TestDisableRefusals(t *testing.T) {
	_, err := Machine{}.Disable(arch.Site{Form: arch.CondTail, Code: words(0x94000000)}, arch.Enabled, arch.Env{})
	wantRefusal(t, err, "got an isenabled-cond-tail")
}

func TestDisabledRecognisesEachFormOfItsKind(t *testing.T) {
	for _, c := range []struct {
		name string
		code uint32
		kind arch.Kind
		form arch.Form
		ok   bool
	}{
		{"nop", 0xd503201f, arch.Probe, arch.Call, true},
		{"ret", 0xd65f03c0, arch.Probe, arch.Tail, true},
		{"mov w0, #0", 0x52800000, arch.Enabled, arch.Call, true},
		{"b to a helper", 0x14000000, arch.Enabled, arch.Tail, true},
		{"b to a helper, linked", 0x17fffff0, arch.Enabled, arch.Tail, true},
		{"nop", 0xd503201f, arch.Enabled, 0, false},
		{"ret", 0xd65f03c0, arch.Enabled, 0, false},
		{"mov w0, #0", 0x52800000, arch.Probe, 0, false},
		{"b", 0x14000000, arch.Probe, 0, false},
		{"bl", 0x94000000, arch.Probe, 0, false},
		{"bl to a helper, linked", 0x97fffff0, arch.Enabled, arch.Call, true},
		{"mov x0, #0", 0xd2800000, arch.Enabled, 0, false},
		{"mov w1, #0", 0x52800001, arch.Enabled, 0, false},
		{"ret x1", 0xd65f0020, arch.Probe, 0, false},
	} {
		text := arch.Text{Code: words(0xffffffff, c.code, 0xffffffff), Start: 8}
		got, ok := Machine{}.Disabled(text, 12, c.kind)
		want := arch.Site{}
		if c.ok {
			want = arch.Site{Offset: 12, Form: c.form, Code: words(c.code)}
		}
		if diff := cmp.Diff(want, got); ok != c.ok || diff != "" {
			t.Errorf("%s as %s: %v %s", c.name, arch.Describe(c.kind, c.form), ok, diff)
		}
	}
}

func TestDisabledIsNotRandomBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		insn := r.Uint32()
		if insn>>26 == 5 {
			continue // a b
		}
		kinds := []arch.Kind{arch.Probe, arch.Enabled}
		if insn>>26 == 0x25 {
			kinds = kinds[:1] // a bl
		}
		for _, k := range kinds {
			if got, ok := (Machine{}).Disabled(arch.Text{Code: words(insn)}, 0, k); ok {
				t.Fatalf("%08x is taken for %s", insn, arch.Describe(k, got.Form))
			}
		}
	}
	if _, ok := (Machine{}).Disabled(arch.Text{Code: words(0xd503201f)}, 2, arch.Probe); ok {
		t.Error("half a nop is taken for a site")
	}
}
