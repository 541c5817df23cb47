package amd64

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
)

var thunked = arch.Env{ReturnThunk: true}

// mustDisable returns the disabled form of a site.
func mustDisable(t *testing.T, s arch.Site, k arch.Kind, env arch.Env) arch.Change {
	t.Helper()
	c, err := Machine{}.Disable(s, k, env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReturnThunkLeavesCallsAsTheyAre(t *testing.T) {
	for _, k := range kinds {
		for _, n := range []int{5, 6} {
			for _, env := range environments {
				site := arch.Site{Form: arch.Call, Code: make([]byte, n)}
				want := mustDisable(t, site, k, env)
				env.ReturnThunk = true
				if diff := cmp.Diff(want, mustDisable(t, site, k, env)); diff != "" {
					t.Error(diff)
				}
			}
		}
	}
}

// A jump is emulated as a nop of one byte is, so these sites need none.
func TestReturnThunkMakesTheSameJumpsToBeArmed(t *testing.T) {
	same := func(s arch.Site, env arch.Env) {
		t.Helper()
		want := mustDisable(t, s, arch.Probe, env)
		env.Armable = true
		got := mustDisable(t, s, arch.Probe, env)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		at := got.New[got.Record-s.Offset:]
		if inst, err := x86asm.Decode(at, 64); err != nil || inst.Op != x86asm.JMP {
			t.Errorf("% x is not a jump: %v, %v", at, inst, err)
		}
	}
	same(arch.Site{Form: arch.Tail, Code: make([]byte, 5)}, thunked)
	same(arch.Site{Form: arch.Tail, GOT: true, Code: make([]byte, 6)}, thunked)
	same(condThunkEnv(0x20))
}

// condThunkEnv is code with a conditional tail call at 0x10 and a jump to the
// return thunk at each of the given offsets.
func condThunkEnv(jumps ...uint64) (arch.Site, arch.Env) {
	code := make([]byte, 0x200)
	copy(code[0x10:], []byte{0x0f, 0x84})
	env := arch.Env{ReturnThunk: true, Text: arch.Text{Code: code}}
	for _, at := range jumps {
		code[at] = 0xe9
		env.Returns = append(env.Returns, arch.Reloc{Offset: at + 1, Type: uint32(elf.R_X86_64_PLT32), Addend: -4})
	}
	return arch.Site{Offset: 0x10, Form: arch.CondTail, Code: code[0x10:0x16]}, env
}

func TestReturnThunkSendsConditionalTailsToTheNearestReturn(t *testing.T) {
	for _, c := range []struct {
		kind  arch.Kind
		jumps []uint64
		want  string
	}{
		{arch.Probe, []uint64{0x16}, "75 04 eb 02 cc cc"},             // jne over; jmp 0x16; int3; int3
		{arch.Probe, []uint64{0x0, 0x20, 0x100}, "75 04 eb 0c cc cc"}, // jmp 0x20
		{arch.Probe, []uint64{0x0, 0x90}, "75 04 eb ec cc cc"},        // jmp 0x0
		{arch.Probe, []uint64{0x14 + 127}, "75 04 eb 7f cc cc"},
		{arch.Enabled, []uint64{0x16}, "75 04 31 c0 eb 00"}, // jne over; xor %eax,%eax; jmp 0x16
		{arch.Enabled, []uint64{0x16 + 127}, "75 04 31 c0 eb 7f"},
	} {
		site, env := condThunkEnv(c.jumps...)
		got, err := Machine{}.Disable(site, c.kind, env)
		if err != nil {
			t.Fatal(err)
		}
		if want := unhex(t, c.want); !bytes.Equal(got.New, want) || got.Record != 0x12 || got.Target != arch.TargetNone {
			t.Errorf("jumps at %x: got % x, record %#x, target %d", c.jumps, got.New, got.Record, got.Target)
		}
		back, ok := Machine{}.Disabled(arch.Text{Code: got.New, Start: 0x10}, 0x12, c.kind)
		if !ok || back.Form != arch.CondTail || back.Offset != 0x10 {
			t.Errorf("read back as %+v, %v", back, ok)
		}
	}
}

// nearReturn is code with a conditional tail call at 0x100 and, a distance from
// its end, a jump to the return thunk.
func nearReturn(distance int) (arch.Site, arch.Env) {
	const at, start = 0x100, 0x40
	code := make([]byte, 0x200)
	jump := at + 6 + distance
	code[jump-start] = x86.OpJmp
	site := arch.Site{Offset: at, Form: arch.CondTail, Code: []byte{0x0f, 0x84, 0, 0, 0, 0}}
	return site, arch.Env{
		ReturnThunk: true, Text: arch.Text{Code: code, Start: start},
		Returns: []arch.Reloc{{Offset: uint64(jump) + 1, Type: uint32(elf.R_X86_64_PLT32), Addend: -4}},
	}
}

// With no room for a jump to the thunk, the site jumps to one that does.
func TestReturnThunkSendsConditionalTailsToANearReturn(t *testing.T) {
	for _, k := range []struct {
		kind   arch.Kind
		new    string // with the distance left out
		asm    string
		behind int // the end of the short jump, from the end of the site
	}{
		{arch.Probe, "75 04 eb 00 cc cc", "jne .+0x6; jmp .+0x2; int3; int3", -2},
		{arch.Enabled, "75 04 31 c0 eb 00", "jne .+0x6; xor %eax,%eax; jmp .+0x2", 0},
	} {
		for _, distance := range []int{-128 + k.behind, -30, 0, 1, 99, 127 + k.behind} {
			site, env := nearReturn(distance)
			got, err := Machine{}.Disable(site, k.kind, env)
			if err != nil {
				t.Fatalf("%d away: %v", distance, err)
			}
			want := unhex(t, k.new)
			if asm := decodeAsm(t, want); asm != k.asm {
				t.Fatalf("the test's own code is %s, want %s", asm, k.asm)
			}
			want[6+k.behind-1] = byte(distance - k.behind)
			if diff := cmp.Diff(arch.Change{Site: site, New: want, Record: 0x102}, got); diff != "" {
				t.Errorf("%d away: %s", distance, diff)
			}
			back, ok := Machine{}.Disabled(arch.Text{Code: got.New, Start: 0x100}, 0x102, k.kind)
			if diff := cmp.Diff(arch.Site{Offset: 0x100, Form: arch.CondTail, Code: want}, back); !ok || diff != "" {
				t.Errorf("%d away, read back: %v %s", distance, ok, diff)
			}
		}
	}
}

func TestReturnThunkRefusesConditionalTailsFarFromAReturn(t *testing.T) {
	for _, k := range []struct {
		kind     arch.Kind
		from, to int
	}{{arch.Probe, -131, 126}, {arch.Enabled, -129, 128}} {
		for _, distance := range []int{k.from, k.to} {
			site, env := nearReturn(distance)
			_, err := Machine{}.Disable(site, k.kind, env)
			wantRefusal(t, err, "got a conditional tail call in code that returns through a thunk, and no return is near; "+
				"compile with -fno-optimize-sibling-calls")
		}
	}
}

func TestReturnThunkDoesNotSendThemToAnythingElse(t *testing.T) {
	for name, change := range map[string]func(*arch.Env){
		"a conditional jump to the thunk": func(env *arch.Env) { env.Text.Code[env.Returns[0].Offset-1-env.Text.Start] = 0x84 },
		"a jump behind the thunk":         func(env *arch.Env) { env.Returns[0].Addend = 0 },
		"what is outside of the text":     func(env *arch.Env) { env.Text.Code = env.Text.Code[:0xc0] },
		"nothing":                         func(env *arch.Env) { env.Returns = nil },
	} {
		site, env := nearReturn(20)
		change(&env)
		if c, err := (Machine{}).Disable(site, arch.Probe, env); err == nil {
			t.Errorf("%s: % x", name, c.New)
		}
	}
}
