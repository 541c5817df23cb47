package amd64

import (
	"bytes"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// The bytes of libdtrace (dt_link.c, dt_modtext), where it has any for a site, and the
// distance of what is recorded.
func TestDOFForms(t *testing.T) {
	call, jmp := []byte{0xe8, 0, 0, 0, 0}, []byte{0xe9, 0, 0, 0, 0}
	jne := []byte{0x0f, 0x85, 0, 0, 0, 0}
	callGOT, jmpGOT := []byte{0xff, 0x15, 0, 0, 0, 0}, []byte{0xff, 0x25, 0, 0, 0, 0}
	for _, c := range []struct {
		code   []byte
		form   arch.Form
		kind   arch.Kind
		want   []byte
		record uint64
	}{
		{call, arch.Call, arch.Probe, []byte{0x90, 0x90, 0x90, 0x90, 0x90}, 0},
		{jmp, arch.Tail, arch.Probe, []byte{0xc3, 0x90, 0x90, 0x90, 0x90}, 0},
		{call, arch.Call, arch.Enabled, []byte{0x48, 0x33, 0xc0, 0x90, 0x90}, 3},
		{jmp, arch.Tail, arch.Enabled, []byte{0x48, 0x33, 0xc0, 0xc3, 0x90}, 0},
		// je over; ret; nop x 3; over:
		{jne, arch.CondTail, arch.Probe, []byte{0x74, 0x04, 0xc3, 0x90, 0x90, 0x90}, 2},
		// je over; xor %eax,%eax; ret; nop; over:
		{jne, arch.CondTail, arch.Enabled, []byte{0x74, 0x04, 0x33, 0xc0, 0xc3, 0x90}, 2},
		{callGOT, arch.Call, arch.Probe, []byte{0x90, 0x90, 0x90, 0x90, 0x66, 0x90}, 0},
		{jmpGOT, arch.Tail, arch.Enabled, []byte{0x48, 0x33, 0xc0, 0xc3, 0x66, 0x90}, 0},
	} {
		got, err := Machine{}.DisableDOF(arch.Site{Offset: 16, Form: c.form, Code: c.code}, c.kind)
		if err != nil || !bytes.Equal(got.New, c.want) || got.RecordedOffset != 16+c.record {
			t.Errorf("% x as %s: % x, recorded at %d, %v", c.code, arch.Describe(c.kind, c.form), got.New, got.RecordedOffset, err)
		}
		// A kernel emulates the instruction of a probe, and skips that of a test.
		insn, err := x86asm.Decode(got.New[got.RecordedOffset-16:], 64)
		if err != nil || (insn.Op == x86asm.RET) != (c.kind == arch.Probe && c.form != arch.Call) {
			t.Errorf("% x as %s: %v is recorded, %v", c.code, arch.Describe(c.kind, c.form), insn, err)
		}
		if rest := got.New[got.RecordedOffset-16+uint64(insn.Len):]; c.kind == arch.Enabled && c.form != arch.Call && rest[0] != 0xc3 {
			t.Errorf("% x as %s: % x follows what a kernel skips", c.code, arch.Describe(c.kind, c.form), rest)
		}
	}
	for _, s := range []arch.Site{{Form: arch.Call, Register: true, Code: []byte{0xff, 0xd0}}, {Form: arch.Nop, Code: nop5}} {
		if c, err := (Machine{}).DisableDOF(s, arch.Probe); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

// DTrace itself records the return of a test that is a tail call.
func TestRecordedByDTrace(t *testing.T) {
	text := arch.Text{Code: []byte{0x90, 0x48, 0x33, 0xc0, 0xc3, 0x90, 0x90}}
	for _, record := range []uint64{1, 4} {
		s, ok := Machine{}.RecordedDOF(text, record, arch.Enabled)
		if !ok || s.Offset != 1 || s.Form != arch.Tail {
			t.Errorf("recorded at %d: %+v, %v", record, s, ok)
		}
	}
	for _, record := range []uint64{2, 3, 5} {
		if s, ok := (Machine{}).RecordedDOF(text, record, arch.Enabled); ok && s.Form == arch.Tail {
			t.Errorf("recorded at %d: %+v", record, s)
		}
	}
}
