package amd64

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
)

// The disabled forms, by their assembly. A long nop costs one decode slot, and
// int3 behind a return keeps the processor from speculating past it.
var (
	nop2        = []byte{0x66, 0x90}                         // xchg %ax,%ax
	nop3        = []byte{0x0f, 0x1f, 0x00}                   // nopl (%rax)
	nop4        = []byte{0x0f, 0x1f, 0x40, 0x00}             // nopl 0(%rax)
	nop5        = []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}       // nopl 0(%rax,%rax,1)
	nop6        = []byte{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00} // nopw 0(%rax,%rax,1)
	ret2        = []byte{0xc3, 0xcc}                         // ret; int3
	ret3        = []byte{0xc3, 0xcc, 0xcc}                   // ret; int3 x 2
	ret4        = []byte{0xc3, 0xcc, 0xcc, 0xcc}             // ret; int3 x 3
	ret5        = []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc}       // ret; int3 x 4
	ret6        = []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc} // ret; int3 x 5
	zero2       = []byte{0x31, 0xc0}                         // xor %eax,%eax
	zero3       = []byte{0x31, 0xc0, 0x90}                   // xor %eax,%eax; nop
	zero4       = []byte{0x31, 0xc0, 0x66, 0x90}             // xor %eax,%eax; xchg %ax,%ax
	zero5       = []byte{0x31, 0xc0, 0x0f, 0x1f, 0x00}       // xor %eax,%eax; nopl (%rax)
	zero6       = []byte{0x31, 0xc0, 0x0f, 0x1f, 0x40, 0x00} // xor %eax,%eax; nopl 0(%rax)
	zeroRet3    = []byte{0x31, 0xc0, 0xc3}                   // xor %eax,%eax; ret
	zeroRet4    = []byte{0x31, 0xc0, 0xc3, 0xcc}             // xor %eax,%eax; ret; int3
	zeroRet5    = []byte{0x31, 0xc0, 0xc3, 0xcc, 0xcc}       // xor %eax,%eax; ret; int3 x 2
	zeroRet6    = []byte{0x31, 0xc0, 0xc3, 0xcc, 0xcc, 0xcc} // xor %eax,%eax; ret; int3 x 3
	condRet     = []byte{0x70, 0x01, 0xc3, 0x0f, 0x1f, 0x00} // jcc over; ret; over: nopl (%rax)
	condZeroRet = []byte{0x70, 0x04, 0x31, 0xc0, 0xc3, 0xcc} // jcc over; xor %eax,%eax; ret; int3; over:
	jmp5        = []byte{0xe9, 0x00, 0x00, 0x00, 0x00}       // jmp rel32
	jmp6        = []byte{0xe9, 0x00, 0x00, 0x00, 0x00, 0xcc} // jmp rel32; int3
	call5       = []byte{0xe8, 0x00, 0x00, 0x00, 0x00}       // call rel32
	call6       = []byte{0x67, 0xe8, 0x00, 0x00, 0x00, 0x00} // addr32 call rel32
	load6       = []byte{0x8b, 0x05, 0x00, 0x00, 0x00, 0x00} // mov disp32(%rip),%eax
)

// prefixAddr32 does nothing before a call.
const prefixAddr32 = 0x67

// The forms of probe calls under Env.Armable. They begin with a nop of one byte, as
// SystemTap's sites do: that one all kernels of Linux emulate. A long nop, or a
// return, those up to 6.12 execute out of line, for many times the cost; and 6.18
// makes a call of a nop5, which forked children do not survive. FreeBSD's kernel steps
// over one byte at its own breakpoints, and its fbt provider owns every c3.
var (
	nopNop2    = []byte{0x90, 0x90}                         // nop; nop
	nopNop3    = []byte{0x90, 0x66, 0x90}                   // nop; xchg %ax,%ax
	nopNop4    = []byte{0x90, 0x0f, 0x1f, 0x00}             // nop; nopl (%rax)
	nopNop5    = []byte{0x90, 0x0f, 0x1f, 0x40, 0x00}       // nop; nopl 0(%rax)
	nopNop6    = []byte{0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00} // nop; nopl 0(%rax,%rax,1)
	nopRet2    = []byte{0x90, 0xc3}                         // nop; ret
	nopRet3    = []byte{0x90, 0xc3, 0xcc}                   // nop; ret; int3
	nopRet4    = []byte{0x90, 0xc3, 0xcc, 0xcc}             // nop; ret; int3 x 2
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

// inverted is the opcode of the short jcc on the inverse of the condition of jcc rel32: the
// condition is the low nibble, and its lowest bit inverts it.
func inverted(jcc []byte) byte { return opJccShort | (jcc[1]&0x0f ^ 1) }

// condSkip is the length of the short jcc before the instruction that executes
// only when the probe is reached.
const condSkip = 2

// family holds the forms of one kind of site, by form and then by length. Those of less
// than 5 bytes are of calls through registers.
type family [arch.Forms][][]byte

var plain = [...]family{
	arch.Probe: {
		arch.Call:     {nop2, nop3, nop4, nop5, nop6},
		arch.Tail:     {ret2, ret3, ret4, ret5, ret6},
		arch.CondTail: {condRet},
	},
	arch.Enabled: {
		arch.Call:     {zero2, zero3, zero4, zero5, zero6},
		arch.Tail:     {zeroRet3, zeroRet4, zeroRet5, zeroRet6},
		arch.CondTail: {condZeroRet},
	},
}

// Is-enabled tests have no notes, so nobody arms them.
var armable = [...]family{
	arch.Probe: {
		arch.Call:     {nopNop2, nopNop3, nopNop4, nopNop5, nopNop6},
		arch.Tail:     {nopRet2, nopRet3, nopRet4, nopRet5, nopRet6},
		arch.CondTail: {condNopRet},
	},
	arch.Enabled: plain[arch.Enabled],
}

// Disable chooses by length among the forms of the site's kind and form.
func (Machine) Disable(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	if s.Form == arch.Nop {
		return disableNop(s, k, env)
	}
	if err := checkRegister(s, k, env); err != nil {
		return arch.Change{}, err
	}
	if env.Semaphore != 0 && k == arch.Enabled {
		return test(s, env)
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
			c.New[0] = inverted(s.Code)
			c.Record += condSkip
		}
		return c, nil
	}
	return arch.Change{}, arch.Refuse("", "%s of %d bytes", arch.One(k, s.Form), len(s.Code))
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

// checkRegister refuses what has no room for the jump or the call that it would take.
// That would need a relocation of its own, too.
func checkRegister(s arch.Site, k arch.Kind, env arch.Env) error {
	switch {
	case !s.Register, k == arch.Enabled && env.Semaphore != 0 && len(s.Code) == movLen:
		return nil
	case k == arch.Enabled && env.Semaphore != 0:
		return arch.Refuse(fixLarge, "%s through a register, which has no room to load a semaphore", arch.One(k, s.Form))
	case s.Form == arch.Tail && (env.ReturnThunk || k == arch.Enabled && len(s.Code) < len(zeroRet3)):
		return arch.Refuse("compile with -fno-optimize-sibling-calls",
			"%s through a register, of %d bytes, which are too few", arch.One(k, s.Form), len(s.Code))
	}
	return nil
}

// disableThunk keeps a jump a jump: to the return thunk, or to a helper that
// sets the result first. A bare ret would undo the mitigation. Jumps are emulated
// as nops of one byte are, so these forms are armable as they are.
func disableThunk(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	if s.Form == arch.CondTail {
		return disableCondThunk(s, k, env)
	}
	c := arch.Change{Site: s, New: bytes.Clone(jmp5), Record: s.Offset, Target: arch.TargetThunk}
	if len(s.Code) == len(jmp6) {
		c.New = bytes.Clone(jmp6)
	}
	if k == arch.Enabled {
		c.Target = arch.TargetHelper
	}
	c.Reloc = arch.Reloc{Offset: s.Offset + 1, Type: uint32(elf.R_X86_64_PLT32), Addend: endAddend}
	return c, nil
}

// disableCondThunk has no room for an inverted jump and a jump to the thunk. But
// code that returns through the thunk holds such jumps, and where one is near, a
// short jump to it returns just as well: at both places the stack is that of a
// return.
func disableCondThunk(s arch.Site, k arch.Kind, env arch.Env) (arch.Change, error) {
	code := bytes.Clone(condThunk[k])
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
		jmp := env.Text.At(r.Offset-1, 1)
		if jmp == nil || jmp[0] != opJmp || checkAddend(r) != nil {
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
// the longest first, because ret6 begins as ret5 does, and zeroRet3 as zero2.
func (f *family) find(t arch.Text, record uint64) (arch.Site, bool) {
	var found arch.Site
	for _, form := range []arch.Form{arch.Call, arch.Tail} {
		for _, code := range f[form] {
			if b := t.At(record, len(code)); len(code) > len(found.Code) && b != nil && bytes.Equal(b, code) {
				found = arch.Site{Offset: record, Form: form, GOT: len(code) == len(jmp6), Register: len(code) < len(jmp5), Code: b}
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
