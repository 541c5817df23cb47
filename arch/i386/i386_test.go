package i386

import (
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

var kinds = []arch.Kind{arch.Probe, arch.Enabled}

// decodeAsm shows code as the decoder of golang.org/x/arch reads it, with jumps
// relative to their own start.
func decodeAsm(t *testing.T, code []byte) string {
	t.Helper()
	var out []string
	for len(code) > 0 {
		inst, err := x86asm.Decode(code, 32)
		if err != nil {
			t.Fatalf("% x is not an instruction: %v", code, err)
		}
		text := x86asm.GNUSyntax(inst, 0, nil)
		if rel, ok := inst.Args[0].(x86asm.Rel); ok {
			name, _, _ := strings.Cut(text, " ")
			text = fmt.Sprintf("%s .+%#x", name, int(rel)+inst.Len)
		}
		out, code = append(out, text), code[inst.Len:]
	}
	return strings.Join(out, "; ")
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*arch.Refusal)) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestEachRegisterMayHoldTheOffsetTable(t *testing.T) {
	for reg, name := range []string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"} {
		for first, form := range map[byte]arch.Form{0x90: arch.Call, 0xa0: arch.Tail} {
			code := []byte{0xff, first | byte(reg), 0, 0, 0, 0}
			site, err := Machine{}.Decode(arch.Text{Code: code}, []arch.Reloc{{Offset: 2, Type: uint32(elf.R_386_GOT32X), Implicit: true}})
			if reg == 4 { // which a SIB byte follows
				if err == nil {
					t.Errorf("% x is %+v", code, site)
				}
				continue
			}
			if diff := cmp.Diff(arch.Site{Form: form, GOT: true, Code: code}, site); err != nil || diff != "" {
				t.Errorf("through %%%s: %v %s", name, err, diff)
			}
		}
	}
}

// conditions holds the condition that inverts each, in the order of encoding.
var conditions = []struct{ cc, inverse string }{
	{"o", "no"}, {"no", "o"}, {"b", "ae"}, {"ae", "b"}, {"e", "ne"}, {"ne", "e"}, {"be", "a"}, {"a", "be"},
	{"s", "ns"}, {"ns", "s"}, {"p", "np"}, {"np", "p"}, {"l", "ge"}, {"ge", "l"}, {"le", "g"}, {"g", "le"},
}

func TestConditionalTailsOfAllConditions(t *testing.T) {
	for i, c := range conditions {
		code := []byte{0x0f, byte(0x80 | i), 0xfc, 0xff, 0xff, 0xff}
		site, err := Machine{}.Decode(arch.Text{Code: code}, []arch.Reloc{{Offset: 2, Type: uint32(elf.R_386_PC32), Implicit: true}})
		if err != nil || site.Form != arch.CondTail {
			t.Errorf("j%s: %+v, %v", c.cc, site, err)
			continue
		}
		for _, k := range []struct {
			kind    arch.Kind
			armable bool
			want    string
		}{
			{arch.Probe, false, "j" + c.inverse + " .+0x3; ret; lea (%esi),%esi"},
			{arch.Probe, true, "j" + c.inverse + " .+0x4; nop; ret; data16 nop"},
			{arch.Enabled, false, "j" + c.inverse + " .+0x6; xor %eax,%eax; ret; int3"},
		} {
			got, err := Machine{}.Disable(site, k.kind, arch.Env{Armable: k.armable})
			if err != nil {
				t.Fatal(err)
			}
			if asm := decodeAsm(t, got.New); asm != k.want || got.Record != 2 {
				t.Errorf("j%s: %s with the record at %d, want %s", c.cc, asm, got.Record, k.want)
			}
		}
	}
}

// NOPs leave all registers and flags as they are, and are known to the first
// processors with 32 bits: lea of a register into itself.
func TestNopsOfAllProcessors(t *testing.T) {
	for _, code := range mode.Nops[3:] {
		inst, err := x86asm.Decode(code, 32)
		if err != nil || inst.Len != len(code) || inst.Op != x86asm.LEA || inst.Args[0] != x86asm.ESI {
			t.Errorf("% x is %v, %v", code, inst, err)
			continue
		}
		if m := inst.Args[1].(x86asm.Mem); m.Base != x86asm.ESI || m.Index != 0 || m.Disp != 0 {
			t.Errorf("% x loads %v", code, m)
		}
	}
}

func TestDisableRefusesALengthThatHasNoForm(t *testing.T) {
	for _, c := range []struct {
		form arch.Form
		kind arch.Kind
		env  arch.Env
		want string
	}{
		{arch.CondTail, arch.Probe, arch.Env{}, "got a cond-tail of 4 bytes"},
		{arch.Call, arch.Enabled, arch.Env{}, "got an isenabled of 4 bytes"},
		{arch.Call, arch.Enabled, arch.Env{Semaphore: 2}, "got an isenabled of 4 bytes"},
		{arch.Tail, arch.Probe, arch.Env{ReturnThunk: true}, "got a tail of 4 bytes"},
		{arch.CondTail, arch.Enabled, arch.Env{ReturnThunk: true}, "got an isenabled-cond-tail of 4 bytes"},
	} {
		_, err := Machine{}.Disable(arch.Site{Form: c.form, Code: make([]byte, 4)}, c.kind, c.env)
		wantRefusal(t, err, c.want)
	}
}

// condThunkEnv is code with a conditional tail call at 0x10 and a jump to the
// return thunk at each of the given offsets.
func condThunkEnv(jumps ...uint64) (arch.Site, arch.Env) {
	code := make([]byte, 0x200)
	copy(code[0x10:], []byte{0x0f, 0x84, 0xfc, 0xff, 0xff, 0xff})
	env := arch.Env{ReturnThunk: true, Text: arch.Text{Code: code}}
	for _, at := range jumps {
		copy(code[at:], []byte{0xe9, 0xfc, 0xff, 0xff, 0xff}) // jmp rel32
		env.Returns = append(env.Returns, arch.Reloc{Offset: at + 1, Type: uint32(elf.R_386_PC32), Implicit: true})
	}
	return arch.Site{Offset: 0x10, Form: arch.CondTail, Code: code[0x10:0x16]}, env
}

func TestReturnThunkSendsConditionalTailsToTheNearestReturn(t *testing.T) {
	for _, c := range []struct {
		jumps []uint64
		want  string
	}{
		{[]uint64{0x20}, "jne .+0x6; jmp .+0xe; int3; int3"},
		{[]uint64{0x0, 0x40}, "jne .+0x6; jmp .-0x12; int3; int3"},
		{[]uint64{0x93}, "jne .+0x6; jmp .+0x81; int3; int3"},
	} {
		site, env := condThunkEnv(c.jumps...)
		got, err := Machine{}.Disable(site, arch.Probe, env)
		if err != nil {
			t.Errorf("%#x: %v", c.jumps, err)
			continue
		}
		asm := strings.Replace(decodeAsm(t, got.New), ".+-", ".-", 1)
		if asm != c.want {
			t.Errorf("%#x: %s, want %s", c.jumps, asm, c.want)
		}
	}
	far := "got a conditional tail call in code that returns through a thunk, and no return is near; compile with -fno-optimize-sibling-calls"
	for _, jumps := range [][]uint64{nil, {0x94}} {
		site, env := condThunkEnv(jumps...)
		_, err := Machine{}.Disable(site, arch.Probe, env)
		wantRefusal(t, err, far)
	}
	site, env := condThunkEnv(0x20)
	env.Text.Code[0x21] = 0 // no jump to the thunk itself, but before it
	_, err := Machine{}.Disable(site, arch.Probe, env)
	wantRefusal(t, err, far)
}

// The helper's call goes to the function behind it, which reads where it returns to,
// and both return.
func TestHelperFindsItself(t *testing.T) {
	for thunk, want := range map[string]string{
		"":      "call .+0xe; movzwl 0x3(%eax),%eax; ret; int3; mov (%esp),%eax; ret; int3",
		"thunk": "call .+0x11; movzwl 0x3(%eax),%eax; jmp .+0x1; mov (%esp),%eax; jmp .+0x1",
	} {
		var code []byte
		for _, i := range (Machine{}).Stub(arch.Stub{Kind: arch.Enabled, Thunk: thunk, Semaphore: "semaphore"}) {
			code = append(code, i.Code...)
		}
		if got := decodeAsm(t, code); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		to, _ := Machine{}.Branch(arch.Text{Code: code}, 0)
		if rest := decodeAsm(t, code[to:]); !strings.HasPrefix(rest, "mov (%esp),%eax; ") {
			t.Errorf("the call goes to %s", rest)
		}
		code[1]++
		if _, ok := (Machine{}).Load(arch.Text{Code: code}, 0); ok {
			t.Errorf("% x is taken for a helper", code)
		}
	}
}

// Only the forms themselves are recognised: whatever random bytes are accepted
// as, they must be exactly its bytes.
func TestDisabledIsNotRandomBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	// What forms are made of, so that near misses are common.
	parts := []string{"\x3e", "\x8d\x74\x26\x00", "\x8d\x76\x00", "\x8d\xb6\x00", "\x00", "\x66", "\xc3", "\xcc\xcc", "\xcc", "\x31\xc0", "\x75\x01", "\x02", "\x04", "\x90"}
	known := [2]map[string]bool{{}, {}}
	for _, k := range kinds {
		for _, site := range []arch.Site{
			{Form: arch.Call, Code: make([]byte, 5)}, {Form: arch.Call, Code: make([]byte, 6)},
			{Form: arch.Tail, Code: make([]byte, 5)}, {Form: arch.Tail, Code: make([]byte, 6)},
			{Form: arch.CondTail, Code: []byte{0x0f, 0x84, 0, 0, 0, 0}}, {Form: arch.CondTail, Code: []byte{0x0f, 0x85, 0, 0, 0, 0}},
		} {
			for _, env := range []arch.Env{{}, {Armable: true}} {
				c, err := Machine{}.Disable(site, k, env)
				if err != nil {
					t.Fatal(err)
				}
				known[k][string(c.New)] = true
			}
		}
	}
	found := 0
	for range 300_000 {
		var code []byte
		for range 1 + r.IntN(6) {
			code = append(code, parts[r.IntN(len(parts))]...)
		}
		record, k := uint64(r.IntN(len(code)+2)), kinds[r.IntN(2)]
		got, ok := Machine{}.Disabled(arch.Text{Code: code}, record, k)
		if ok && !known[k][string(got.Code)] {
			t.Fatalf("% x at %d is taken for %s, % x", code, record, arch.Describe(k, got.Form), got.Code)
		}
		if ok {
			found++
		}
	}
	if found == 0 {
		t.Error("no form among all these bytes")
	}
}
