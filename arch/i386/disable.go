package i386

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
)

// The disabled forms, by their assembly. A long nop costs one decode slot, and int3
// behind a return keeps the processor from speculating past it. Nops are loads of an
// address that change nothing, which all processors have: before the Pentium Pro, and on
// some later ones (Geode, C3), 0f 1f is no instruction.
var (
	nop5        = []byte{0x3e, 0x8d, 0x74, 0x26, 0x00}       // lea %ds:0(%esi,%eiz,1),%esi
	nop6        = []byte{0x8d, 0xb6, 0x00, 0x00, 0x00, 0x00} // lea 0(%esi),%esi
	ret5        = []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc}       // ret; int3 x 4
	ret6        = []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc} // ret; int3 x 5
	zero5       = []byte{0x31, 0xc0, 0x8d, 0x76, 0x00}       // xor %eax,%eax; lea 0(%esi),%esi
	zero6       = []byte{0x31, 0xc0, 0x8d, 0x74, 0x26, 0x00} // xor %eax,%eax; lea 0(%esi,%eiz,1),%esi
	zeroRet5    = []byte{0x31, 0xc0, 0xc3, 0xcc, 0xcc}       // xor %eax,%eax; ret; int3 x 2
	zeroRet6    = []byte{0x31, 0xc0, 0xc3, 0xcc, 0xcc, 0xcc} // xor %eax,%eax; ret; int3 x 3
	condRet     = []byte{0x70, 0x01, 0xc3, 0x8d, 0x76, 0x00} // jcc over; ret; over: lea 0(%esi),%esi
	condZeroRet = []byte{0x70, 0x04, 0x31, 0xc0, 0xc3, 0xcc} // jcc over; xor %eax,%eax; ret; int3; over:
	jmp5        = []byte{0xe9, 0xfc, 0xff, 0xff, 0xff}       // jmp rel32
	jmp6        = []byte{0xe9, 0xfc, 0xff, 0xff, 0xff, 0xcc} // jmp rel32; int3
	call5       = []byte{0xe8, 0xfc, 0xff, 0xff, 0xff}       // call rel32
	call6       = []byte{0x67, 0xe8, 0xfc, 0xff, 0xff, 0xff} // addr16 call rel32
)

// prefixAddr16 does nothing before a call.
const prefixAddr16 = 0x67

// The forms of probe calls under Env.Armable. They begin with a nop of one byte, as
// SystemTap's sites do: that one all kernels of Linux emulate, and FreeBSD's at its own
// breakpoints.
var (
	nopNop5    = []byte{0x90, 0x8d, 0x74, 0x26, 0x00}       // nop; lea 0(%esi,%eiz,1),%esi
	nopNop6    = []byte{0x90, 0x3e, 0x8d, 0x74, 0x26, 0x00} // nop; lea %ds:0(%esi,%eiz,1),%esi
	nopRet5    = []byte{0x90, 0xc3, 0xcc, 0xcc, 0xcc}       // nop; ret; int3 x 3
	nopRet6    = []byte{0x90, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc} // nop; ret; int3 x 4
	condNopRet = []byte{0x70, 0x02, 0x90, 0xc3, 0x66, 0x90} // jcc over; nop; ret; over: xchg %ax,%ax
)

// opJmpShort is jmp rel8.
const opJmpShort = 0xeb

// condThunk holds conditional tail calls in code that returns through a thunk.
var condThunk = [...][]byte{
	arch.Probe:   {0x70, 0x04, 0xeb, 0x00, 0xcc, 0xcc}, // jcc over; jmp return; int3 x 2; over:
	arch.Enabled: {0x70, 0x04, 0x31, 0xc0, 0xeb, 0x00}, // jcc over; xor %eax,%eax; jmp return; over:
}

// condSkip is the length of the short jcc before the instruction that executes
// only when the probe is reached.
const condSkip = 2

// family holds the forms of one kind of site, by form and then by length.
type family [arch.Forms][][]byte

var plain = [...]family{
	arch.Probe: {
		arch.Call:     {nop5, nop6},
		arch.Tail:     {ret5, ret6},
		arch.CondTail: {condRet},
	},
	arch.Enabled: {
		arch.Call:     {zero5, zero6},
		arch.Tail:     {zeroRet5, zeroRet6},
		arch.CondTail: {condZeroRet},
	},
}

// Is-enabled tests have no notes, so nobody arms them.
var armable = [...]family{
	arch.Probe: {
		arch.Call:     {nopNop5, nopNop6},
		arch.Tail:     {nopRet5, nopRet6},
		arch.CondTail: {condNopRet},
	},
	arch.Enabled: plain[arch.Enabled],
}

// Disable chooses by length among the forms of the site's kind and form.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	if s.Form == arch.Nop {
		return disableNop(s, k, env)
	}
	if env.Semaphore != 0 && k == arch.Enabled {
		return test(s)
	}
	if env.ReturnThunk && s.Form != arch.Call {
		return disableThunk(s, k, env)
	}
	forms := plain[k]
	if env.Armable {
		forms = armable[k]
	}
	for _, code := range forms[s.Form] {
		if len(code) != len(s.Code) {
			continue
		}
		c := arch.Change{Site: s, New: bytes.Clone(code), Record: s.Offset}
		if s.Form == arch.CondTail {
			// The condition is the low nibble; its lowest bit inverts it.
			c.New[0] = 0x70 | (s.Code[1]&0x0f ^ 1)
			c.Record += condSkip
		}
		return c, nil
	}
	return arch.Change{}, refuseLength(s, k)
}

// refuseLength refuses a site as long as none is.
func refuseLength(s arch.Site, k arch.Kind) error {
	return arch.Refuse("", "%s of %d bytes", arch.One(k, s.Form), len(s.Code))
}

// disableNop leaves a nop as it is, or makes it armable.
func disableNop(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	if k != arch.Probe {
		return arch.Change{}, arch.RefuseNop(k)
	}
	code := s.Code
	if env.Armable {
		code = nopNop5
	}
	return arch.Change{Site: s, New: bytes.Clone(code), Record: s.Offset}, nil
}

// distance is the relocation of a jump to code of the same image. The addend is in the
// field. Of the procedure linkage table, as R_386_PLT32 has it, nothing is wanted: its
// entries may ask for the global offset table in a register.
func distance(at uint64) arch.Reloc {
	return arch.Reloc{Offset: at, Type: uint32(elf.R_386_PC32), Implicit: true}
}

// disableThunk keeps a jump a jump: to the return thunk, or to a helper that
// sets the result first. A bare ret would undo the mitigation. Jumps are emulated
// as nops of one byte are, so these forms are armable as they are.
func disableThunk(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	if s.Form == arch.CondTail {
		return disableCondThunk(s, k, env)
	}
	c := arch.Change{Site: s, Record: s.Offset, Target: arch.TargetThunk, Reloc: distance(s.Offset + 1)}
	if k == arch.Enabled {
		c.Target = arch.TargetHelper
	}
	switch len(s.Code) {
	case len(jmp5):
		c.New = bytes.Clone(jmp5)
	case len(jmp6):
		c.New = bytes.Clone(jmp6)
	default:
		return arch.Change{}, refuseLength(s, k)
	}
	return c, nil
}

// disableCondThunk has no room for an inverted jump and a jump to the thunk. But
// code that returns through the thunk holds such jumps, and where one is near, a
// short jump to it returns just as well: at both places the stack is that of a
// return.
func disableCondThunk(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	code := bytes.Clone(condThunk[k])
	if len(s.Code) != len(code) {
		return arch.Change{}, refuseLength(s, k)
	}
	at := bytes.IndexByte(code, opJmpShort) + 1
	near := nearestReturn(env, s.Offset+uint64(at)+1)
	if near == nil {
		return arch.Change{}, arch.Refuse("compile with -fno-optimize-sibling-calls",
			"a conditional tail call in code that returns through a thunk, and no return is near")
	}
	code[0] |= s.Code[1]&0x0f ^ 1
	code[at] = byte(*near)
	return arch.Change{Site: s, New: code, Record: s.Offset + condSkip}, nil
}

// nearestReturn finds the closest jump to the return thunk that a short jump
// ending at offset end reaches, and returns the distance.
func nearestReturn(env arch.Env, end uint64) *int8 {
	var near *int8
	for _, r := range env.Returns {
		jmp := env.Text.At(r.Offset-1, len(jmp5))
		if jmp == nil || jmp[0] != opJmp || !r.Implicit || checkAddend(jmp, endAddend) != nil {
			continue
		}
		distance := int64(r.Offset-1) - int64(end)
		if d := int8(distance); int64(d) == distance && (near == nil || abs(d) < abs(*near)) {
			near = &d
		}
	}
	return near
}

func abs(d int8) int { return max(int(d), -int(d)) }

// Disabled matches the bytes at a record against the forms of its kind: the
// conditional tail call first, which ends as a tail call does where int3 pads
// the code.
func (Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	if b := t.At(record-condSkip, len(condRet)); record >= condSkip && b != nil && isCondTail(b, k) {
		return arch.Site{Offset: record - condSkip, Form: arch.CondTail, Code: b}, true
	}
	for _, forms := range [...]family{plain[k], armable[k]} {
		if site, ok := forms.find(t, record); ok {
			return site, true
		}
	}
	if k == arch.Enabled {
		if site, ok := findTest(t, record); ok {
			return site, true
		}
	}
	if b := t.At(record, len(jmp5)); b != nil && b[0] == opJmp {
		if b6 := t.At(record, len(jmp6)); b6 != nil && b6[5] == 0xcc {
			b = b6
		}
		return arch.Site{Offset: record, Form: arch.Tail, GOT: len(b) == len(jmp6), Code: b}, true
	}
	return arch.Site{}, false
}

// find matches the bytes at a record against the calls and tail calls of a family,
// the longest first, because ret6 begins as ret5 does.
func (f *family) find(t arch.Text, record uint64) (arch.Site, bool) {
	var found arch.Site
	for _, form := range []arch.Form{arch.Call, arch.Tail} {
		for _, code := range f[form] {
			if b := t.At(record, len(code)); len(code) > len(found.Code) && b != nil && bytes.Equal(b, code) {
				found = arch.Site{Offset: record, Form: form, GOT: len(code) == len(jmp6), Code: b}
			}
		}
	}
	return found, found.Code != nil
}

// isCondTail reports whether code is a disabled conditional tail call, with any
// condition and, through a thunk, any distance to the return.
func isCondTail(code []byte, k arch.Kind) bool {
	code = bytes.Clone(code)
	code[0] &= 0xf0
	if bytes.Equal(code, plain[k][arch.CondTail][0]) || bytes.Equal(code, armable[k][arch.CondTail][0]) {
		return true
	}
	want := condThunk[k]
	code[bytes.IndexByte(want, opJmpShort)+1] = 0
	return bytes.Equal(code, want)
}
