package x86_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/i386"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// machine is one of the family, with what a jump to a symbol is in its objects.
type machine struct {
	arch.Machine
	bits  int
	field []byte
	reloc elfreloc.Relocation
	nop3  []byte
	other []arch.Site // what it has more forms of
}

var family = []machine{
	{amd64.Machine, 64, []byte{0, 0, 0, 0}, elfreloc.Relocation{Type: uint32(elf.R_X86_64_PLT32), Addend: -4}, []byte{0x0f, 0x1f, 0x00}, []arch.Site{
		{Form: arch.Call, Register: true, Code: make([]byte, 2)}, {Form: arch.Call, Register: true, Code: make([]byte, 3)},
		{Form: arch.Call, Register: true, Code: make([]byte, 4)}, {Form: arch.Tail, Register: true, Code: make([]byte, 3)},
		{Form: arch.Tail, Register: true, Code: make([]byte, 4)},
	}},
	{i386.Machine, 32, []byte{0xfc, 0xff, 0xff, 0xff}, elfreloc.Relocation{Type: uint32(elf.R_386_PC32), Addend: -4, Implicit: true}, []byte{0x8d, 0x76, 0x00}, nil},
}

func eachMachine(t *testing.T, test func(t *testing.T, m machine)) {
	for _, m := range family {
		t.Run(m.Traits().Name, func(t *testing.T) { test(t, m) })
	}
}

// asm shows code as the decoder of golang.org/x/arch reads it, with jumps relative to
// their own start.
func (m machine) asm(t *testing.T, code []byte) string {
	t.Helper()
	var out []string
	for len(code) > 0 {
		inst := expect.Value(x86asm.Decode(code, m.bits))(t, "% x is not an instruction", code)
		text := x86asm.GNUSyntax(inst, 0, nil)
		if rel, ok := inst.Args[0].(x86asm.Rel); ok {
			name, _, _ := strings.Cut(text, " ")
			text = strings.Replace(fmt.Sprintf("%s .+%#x", name, int(rel)+inst.Len), ".+-", ".-", 1)
		}
		out, code = append(out, text), code[inst.Len:]
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(out, "; "), "retq", "ret"), "jmpq", "jmp")
}

// jump is an opcode and its field.
func (m machine) jump(opcode ...byte) []byte { return append(opcode, m.field...) }

// jumpAt is the relocation of a jump whose field is at an offset.
func (m machine) jumpAt(field uint64) elfreloc.Relocation {
	r := m.reloc
	r.Offset = field
	return r
}

// conditions holds the condition that inverts each, in the order of encoding.
var conditions = []struct{ cc, inverse string }{
	{"o", "no"}, {"no", "o"}, {"b", "ae"}, {"ae", "b"}, {"e", "ne"}, {"ne", "e"}, {"be", "a"}, {"a", "be"},
	{"s", "ns"}, {"ns", "s"}, {"p", "np"}, {"np", "p"}, {"l", "ge"}, {"ge", "l"}, {"le", "g"}, {"g", "le"},
}

// The inverted jump has to skip exactly the code that stands for the probe, and to arrive
// where the conditional jump, not taken, did.
func TestConditionalTailsOfAllConditions(t *testing.T) {
	eachMachine(t, func(t *testing.T, m machine) {
		for i, c := range conditions {
			code := m.jump(0x0f, byte(0x80|i))
			site, err := m.Decode(arch.Text{Code: code}, []elfreloc.Relocation{m.jumpAt(2)})
			if diff := cmp.Diff(arch.Site{Form: arch.CondTail, Code: code}, site); err != nil || diff != "" {
				t.Errorf("j%s: %v %s", c.cc, err, diff)
				continue
			}
			for _, k := range []struct {
				kind    arch.Kind
				armable bool
				want    string
			}{
				{arch.Probe, false, "j" + c.inverse + " .+0x3; ret; " + m.asm(t, m.nop3)},
				{arch.Probe, true, "j" + c.inverse + " .+0x4; nop; ret; data16 nop"},
				{arch.Enabled, false, "j" + c.inverse + " .+0x6; xor %eax,%eax; ret; int3"},
				{arch.Enabled, true, "j" + c.inverse + " .+0x6; xor %eax,%eax; ret; int3"},
			} {
				got := expect.Value(m.Disable(site, k.kind, arch.Context{Armable: k.armable}))(t)
				if asm := m.asm(t, got.New); asm != k.want || got.RecordedOffset != 2 || got.Target != arch.TargetNone {
					t.Errorf("j%s: %s with the record at %d, want %s", c.cc, asm, got.RecordedOffset, k.want)
				}
				back, ok := m.Disabled(arch.Text{Code: got.New}, 2, k.kind)
				if diff := cmp.Diff(arch.Site{Form: arch.CondTail, Code: got.New}, back); !ok || diff != "" {
					t.Errorf("j%s read back: %v %s", c.cc, ok, diff)
				}
			}
		}
	})
}

// returns is code with a conditional tail call at 0x100 and, at distances from its end, jumps
// to the return thunk.
func (m machine) returns(distances ...int) (arch.Site, arch.Context) {
	const at, start = 0x100, 0x40
	env := arch.Context{ReturnThunk: true, Text: arch.Text{Code: make([]byte, 0x200), Start: start}}
	site := arch.Site{Offset: at, Form: arch.CondTail, Code: m.jump(0x0f, 0x84)}
	copy(env.Text.Code[at-start:], site.Code)
	for _, d := range distances {
		jump := at + 6 + d
		copy(env.Text.Code[jump-start:], m.jump(0xe9))
		env.Returns = append(env.Returns, m.jumpAt(uint64(jump)+1))
	}
	return site, env
}

func (m machine) mustDisable(t *testing.T, s arch.Site, k arch.Kind, env arch.Context) arch.Change {
	t.Helper()
	return expect.Value(m.Disable(s, k, env))(t)
}

// A jump is emulated as a nop of one byte is, so these sites need none.
func TestReturnThunkMakesTheSameJumpsToBeArmed(t *testing.T) {
	eachMachine(t, func(t *testing.T, m machine) {
		conditional, env := m.returns(20)
		for _, s := range []arch.Site{{Form: arch.Tail, Code: make([]byte, 5)}, {Form: arch.Tail, GOT: true, Code: make([]byte, 6)}, conditional} {
			env.Armable = false
			want := m.mustDisable(t, s, arch.Probe, env)
			env.Armable = true
			got := m.mustDisable(t, s, arch.Probe, env)
			expect.Equal(t, want, got)
			at := got.New[got.RecordedOffset-s.Offset:]
			expect.Equal(t, x86asm.JMP, expect.Value(x86asm.Decode(at, m.bits))(t).Op, "% x", at)
		}
	})
}

// With no room for a jump to the thunk, the site jumps to the nearest one that does.
func TestReturnThunkSendsConditionalTailsToTheNearestReturn(t *testing.T) {
	eachMachine(t, func(t *testing.T, m machine) {
		for _, k := range []struct {
			kind   arch.Kind
			new    []byte // with the distance left out
			asm    string
			behind int // the end of the short jump, from the end of the site
		}{
			{arch.Probe, []byte{0x75, 4, 0xeb, 0, 0xcc, 0xcc}, "jne .+0x6; jmp .+0x2; int3; int3", -2},
			{arch.Enabled, []byte{0x75, 4, 0x31, 0xc0, 0xeb, 0}, "jne .+0x6; xor %eax,%eax; jmp .+0x2", 0},
		} {
			if asm := m.asm(t, k.new); asm != k.asm {
				t.Fatalf("the test's own code is %s, want %s", asm, k.asm)
			}
			for _, c := range []struct {
				jumps []int
				want  int // the distance of the one that is jumped to
			}{
				{[]int{-128 + k.behind}, -128 + k.behind}, {[]int{-30}, -30}, {[]int{0}, 0}, {[]int{1}, 1}, {[]int{99}, 99},
				{[]int{127 + k.behind}, 127 + k.behind}, {[]int{-30, 10, 100}, 10}, {[]int{-30, 122}, -30},
			} {
				site, env := m.returns(c.jumps...)
				got := expect.Value(m.Disable(site, k.kind, env))(t, "%v away", c.jumps)
				want := bytes.Clone(k.new)
				want[6+k.behind-1] = byte(c.want - k.behind)
				expect.Equal(t, arch.Change{Site: site, New: want, RecordedOffset: 0x102}, got, "%v away", c.jumps)
				back, ok := m.Disabled(arch.Text{Code: got.New, Start: 0x100}, 0x102, k.kind)
				if diff := cmp.Diff(arch.Site{Offset: 0x100, Form: arch.CondTail, Code: want}, back); !ok || diff != "" {
					t.Errorf("%v away, read back: %v %s", c.jumps, ok, diff)
				}
			}
			for _, distance := range []int{-129 + k.behind, 128 + k.behind} {
				site, env := m.returns(distance)
				_, err := m.Disable(site, k.kind, env)
				const want = "got a conditional tail call in code that returns through a thunk, and no return is near; compile with -fno-optimize-sibling-calls"
				if !errors.As(err, new(*arch.Refusal)) || err.Error() != want {
					t.Errorf("%d away: got %v, want %s", distance, err, want)
				}
			}
		}
	})
}

func TestReturnThunkDoesNotSendThemToAnythingElse(t *testing.T) {
	for name, change := range map[string]func(*arch.Context){
		"a conditional jump to the thunk": func(env *arch.Context) { env.Text.Code[env.Returns[0].Offset-1-env.Text.Start] = 0x84 },
		"what is not a jump to the thunk": func(env *arch.Context) {
			env.Returns[0].Addend = 0
			env.Text.Code[env.Returns[0].Offset-env.Text.Start] = 0
		},
		"what is outside of the text": func(env *arch.Context) { env.Text.Code = env.Text.Code[:0xc0] },
		"nothing":                     func(env *arch.Context) { env.Returns = nil },
	} {
		eachMachine(t, func(t *testing.T, m machine) {
			site, env := m.returns(20)
			change(&env)
			if c, err := m.Disable(site, arch.Probe, env); err == nil {
				t.Errorf("%s: % x", name, c.New)
			}
		})
	}
}
