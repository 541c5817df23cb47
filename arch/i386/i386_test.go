package i386

import (
	"debug/elf"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// decodeAsm shows code as the decoder of golang.org/x/arch reads it, with jumps
// relative to their own start.
func decodeAsm(t *testing.T, code []byte) string {
	t.Helper()
	var out []string
	for len(code) > 0 {
		inst := expect.Value(x86asm.Decode(code, 32))(t, "% x is not an instruction", code)
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
			site, err := Machine.Decode(arch.Text{Code: code}, []elfreloc.Relocation{{Offset: 2, Type: uint32(elf.R_386_GOT32X), Implicit: true}})
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
		env  arch.Context
		want string
	}{
		{arch.CondTail, arch.Probe, arch.Context{}, "got a cond-tail of 4 bytes"},
		{arch.Call, arch.Enabled, arch.Context{}, "got an isenabled of 4 bytes"},
		{arch.Call, arch.Enabled, arch.Context{SemaphoreBytes: 2}, "got an isenabled of 4 bytes"},
		{arch.Tail, arch.Probe, arch.Context{ReturnThunk: true}, "got a tail of 4 bytes"},
		{arch.CondTail, arch.Enabled, arch.Context{ReturnThunk: true}, "got an isenabled-cond-tail of 4 bytes"},
	} {
		_, err := Machine.Disable(arch.Site{Form: c.form, Code: make([]byte, 4)}, c.kind, c.env)
		wantRefusal(t, err, c.want)
	}
}

// The helper's call goes to the function behind it, which reads where it returns to,
// and both return.
func TestHelperFindsItself(t *testing.T) {
	for thunk, want := range map[string]string{
		"":      "call .+0xe; movzwl 0x3(%eax),%eax; ret; int3; mov (%esp),%eax; ret; int3",
		"thunk": "call .+0x11; movzwl 0x3(%eax),%eax; jmp .+0x1; mov (%esp),%eax; jmp .+0x1",
	} {
		var code []byte
		for _, i := range Machine.Stub(arch.Stub{Kind: arch.Enabled, Thunk: thunk, Semaphore: "semaphore"}) {
			code = append(code, i.Code...)
		}
		expect.Equal(t, want, decodeAsm(t, code))
		to, _ := Machine.Branch(arch.Text{Code: code}, 0)
		if rest := decodeAsm(t, code[to:]); !strings.HasPrefix(rest, "mov (%esp),%eax; ") {
			t.Errorf("the call goes to %s", rest)
		}
		code[1]++
		if _, ok := Machine.LoadedSemaphore(arch.Text{Code: code}, 0); ok {
			t.Errorf("% x is taken for a helper", code)
		}
	}
}
