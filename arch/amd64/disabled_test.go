package amd64

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

var kinds = []arch.Kind{arch.Probe, arch.Enabled}

var environments = []arch.Context{{}, {Armable: true}}

// disabledText returns the disabled form of a site between the bytes around it.
func disabledText(t *testing.T, f form, k arch.Kind, env arch.Context, before, after []byte) (arch.Text, arch.Change) {
	t.Helper()
	const start = 0x200
	site := arch.Site{Offset: start + uint64(len(before)), Form: f.form, Register: true, Code: unhex(t, f.code)}
	c := expect.Value(Machine.Disable(site, k, env))(t)
	return arch.Text{Code: bytes.Join([][]byte{before, c.New, after}, nil), Start: start}, c
}

// eachDisabled calls check with each form of site as each kind in each environment.
func eachDisabled(check func(f form, k arch.Kind, env arch.Context)) {
	for _, f := range registerForms {
		for _, k := range kinds {
			if k == arch.Enabled && f.enabled == "" {
				continue // for which there is no room
			}
			for _, env := range environments {
				check(f, k, env)
			}
		}
	}
}

// What stands around a site is padding or other code, and must not matter.
func TestDisabledRecognisesEachForm(t *testing.T) {
	eachDisabled(func(f form, k arch.Kind, env arch.Context) {
		for _, around := range [][]byte{
			nil, {0xcc, 0xcc, 0xcc}, {0x90, 0x90, 0x90}, {0x66, 0x31, 0xc0}, {0xc3, 0x74, 0x01}, {0x0f, 0x1f, 0x00},
			{0x75, 0x02}, {0x75, 0x02, 0x90}, {0x66, 0x90},
		} {
			text, c := disabledText(t, f, k, env, around, around)
			got, ok := Machine.Disabled(text, c.RecordedOffset, k)
			// What is behind a short form may make a longer one of it.
			if !ok || got.Offset != c.Site.Offset || !bytes.HasPrefix(got.Code, c.New) || around == nil && len(got.Code) != len(c.New) {
				t.Errorf("%s as %s in %+v before % x is read back as %+v, %v", f.name, arch.Describe(k, f.form), env, around, got, ok)
			}
		}
	})
}

// A load of a stub's address has room for what a call through its register has none: it
// becomes that of the address of a helper, which loads the semaphore.
func TestLoadsOfTestsBecomeThoseOfTheirHelper(t *testing.T) {
	for _, c := range []struct{ code, new string }{
		{"48 8b 05 00 00 00 00", "48 8d 05 00 00 00 00"}, // mov to lea, %rax
		{"4c 8b 3d 00 00 00 00", "4c 8d 3d 00 00 00 00"}, // %r15
	} {
		site := arch.Site{Offset: 0x40, GOT: true, Register: true, Code: unhex(t, c.code)}
		got := mustDisable(t, site, arch.Enabled, arch.Context{SemaphoreBytes: 2, Armable: true})
		want := arch.Change{
			Site: site, New: unhex(t, c.new), RecordedOffset: 0x40, Target: arch.TargetTestHelper,
			Reloc: elfreloc.Relocation{Offset: 0x43, Type: uint32(elf.R_X86_64_PC32), Addend: -4},
		}
		expect.Equal(t, want, got)
		got.New[3] = 0x20 // as linked
		text := arch.Text{Code: got.New, Start: 0x40}
		if back, ok := Machine.Disabled(text, 0x40, arch.Enabled); !ok || !back.Register || len(back.Code) != len(site.Code) {
			t.Errorf("read back as %+v, %v", back, ok)
		}
		if to, ok := Machine.Branch(text, 0x40); !ok || to != 0x67 {
			t.Errorf("it leads to %#x, %v", to, ok)
		}
		if _, ok := Machine.Disabled(text, 0x40, arch.Probe); ok {
			t.Error("it is taken for a probe's call")
		}
	}
}

// mustDisable returns the disabled form of a site.
func mustDisable(t *testing.T, s arch.Site, k arch.Kind, env arch.Context) arch.Change {
	t.Helper()
	return expect.Value(Machine.Disable(s, k, env))(t)
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*arch.Refusal)) {
		t.Fatalf("got %v, want a refusal", err)
	}
	expect.Equal(t, want, err.Error())
}

func TestDisableRefusesShortTailsThatHaveToReturnOtherwise(t *testing.T) {
	site := arch.Site{Form: arch.Tail, Register: true, Code: []byte{0xff, 0xe0}}
	_, err := Machine.Disable(site, arch.Enabled, arch.Context{})
	wantRefusal(t, err, "got an isenabled-tail through a register, of 2 bytes, which are too few; compile with -fno-optimize-sibling-calls")
	_, err = Machine.Disable(site, arch.Probe, arch.Context{ReturnThunk: true})
	wantRefusal(t, err, "got a tail through a register, of 2 bytes, which are too few; compile with -fno-optimize-sibling-calls")
	site = arch.Site{Form: arch.Call, Register: true, Code: []byte{0x42, 0xff, 0x54, 0x25, 0}}
	_, err = Machine.Disable(site, arch.Enabled, arch.Context{SemaphoreBytes: 4})
	wantRefusal(t, err, "got an isenabled through a register, which has no room to load a semaphore; compile without -mcmodel=large, or convert without notes (--no-stapsdt)")
}

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
		got, err := machine{mode}.DisableDOF(arch.Site{Offset: 16, Form: c.form, Code: c.code}, c.kind)
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
		if c, err := (machine{mode}).DisableDOF(s, arch.Probe); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

// DTrace itself records the return of a test that is a tail call.
func TestRecordedByDTrace(t *testing.T) {
	text := arch.Text{Code: []byte{0x90, 0x48, 0x33, 0xc0, 0xc3, 0x90, 0x90}}
	for _, record := range []uint64{1, 4} {
		s, ok := machine{mode}.RecordedDOF(text, record, arch.Enabled)
		if !ok || s.Offset != 1 || s.Form != arch.Tail {
			t.Errorf("recorded at %d: %+v, %v", record, s, ok)
		}
	}
	for _, record := range []uint64{2, 3, 5} {
		if s, ok := (machine{mode}).RecordedDOF(text, record, arch.Enabled); ok && s.Form == arch.Tail {
			t.Errorf("recorded at %d: %+v", record, s)
		}
	}
}

// record is the distance between the instructions of TestVectorLengths: NOPs behind each keep
// the disassembler in step.
const record = 32

// randomVector returns bytes at random that begin as an instruction with a VEX or EVEX prefix. The
// prefix names register 0 as the second source, which those with one source need.
func randomVector(r *rand.Rand) []byte {
	code := make([]byte, 16)
	for i := range code {
		code[i] = byte(r.Uint32())
	}
	pp := byte(r.IntN(4))
	switch r.IntN(3) {
	case 0:
		code[0], code[1] = 0xc5, code[1]&0x80|0x78|pp
	case 1:
		code[0], code[1], code[2] = 0xc4, code[1]&0xe0|byte(1+r.IntN(3)), code[2]&0x84|0x78|pp
	default: // no mask
		code[0], code[1], code[2], code[3] = 0x62, code[1]&0xf0|byte(1+r.IntN(6)), code[2]&0x80|0x7c|pp, code[3]&0x20|8
	}
	return code
}

// disassemble returns the instructions of objdump at each record, without those it does not know.
func disassemble(t *testing.T, code []byte) map[int][]byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "code")
	disk.Write(t, file, string(code))
	found := map[int][]byte{}
	for _, line := range tools.Lines(t, "objdump", "-D", "-w", "-z", "-b", "binary", "-m", "i386:x86-64", "--insn-width=16", file) {
		fields := strings.Split(line, "\t")
		at, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(fields[0]), ":"), 16, 64)
		if err != nil || len(fields) < 3 || at%record != 0 || strings.Contains(fields[2], "(bad)") {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(fields[1]), " ", ""))
		if err == nil {
			found[int(at)/record] = b
		}
	}
	return found
}

// TestVectorLengths compares the lengths of instructions with a VEX or EVEX prefix with objdump.
func TestVectorLengths(t *testing.T) {
	t.Parallel()
	tools.Need(t, "objdump")
	r := rand.New(rand.NewPCG(1, 62))
	var all []byte
	var code [][]byte
	for range 8000 {
		c := randomVector(r)
		code = append(code, c)
		all = append(append(all, c...), bytes.Repeat([]byte{0x90}, record-len(c))...)
	}
	known := disassemble(t, all)
	for i, b := range known {
		if !bytes.HasPrefix(code[i], b) {
			t.Fatalf("objdump reads % x, and not % x", b, code[i])
		}
		if n := vexLen(code[i]); n != len(b) {
			t.Errorf("% x: length %d, want %d", code[i], n, len(b))
		}
		for n := range len(b) {
			if got := vexLen(code[i][:n]); got != 0 {
				t.Errorf("% x: length %d of what ends behind %d bytes", code[i], got, n)
			}
		}
	}
	if len(known) < 500 {
		t.Errorf("objdump knows %d of the instructions", len(known))
	}
}

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
