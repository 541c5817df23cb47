package x86

import (
	"bytes"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
)

// longest is the length of the longest site that has a form here.
const longest = longLen

// family holds the forms of one kind of site, by form and then by length. Those of less
// than 5 bytes are of calls through registers.
type family [arch.Forms][][]byte

var xorEAX = []byte{0x31, 0xc0} // xor %eax,%eax

// condThunk holds conditional tail calls in code that returns through a thunk.
var condThunk = [...][]byte{
	arch.Probe:   {0x70, 0x04, 0xeb, 0x00, 0xcc, 0xcc}, // jcc over; jmp return; int3 x 2; over:
	arch.Enabled: {0x70, 0x04, 0x31, 0xc0, 0xeb, 0x00}, // jcc over; xor %eax,%eax; jmp return; over:
}

// makeForms makes the disabled forms. A long NOP costs one decode slot, and int3 behind a
// return keeps the processor from speculating past it.
//
// The forms of probe calls under Context.Armable begin with a NOP of one byte, as SystemTap's
// sites do: that one all kernels of Linux emulate. A long NOP, or a return, those up to
// 6.12 execute out of line, for many times the cost; and 6.18 makes a call of the 64-bit
// NOP of 5 bytes, which forked children do not survive. FreeBSD's kernel steps over one
// byte at its own breakpoints, and its fbt provider owns every c3. Is-enabled tests have no
// notes, so nothing arms them.
func (m *Mode) makeForms() *disabledForms {
	d := &disabledForms{}
	probe, test, armable := &d.plain[arch.Probe], &d.plain[arch.Enabled], &d.armable[arch.Probe]
	for n := m.Shortest; n <= longest; n++ {
		probe.add(arch.Call, m.Nops[n])                               // nop
		probe.add(arch.Tail, pad(n, OpRet))                           // ret; int3 x (n-1)
		armable.add(arch.Call, slices.Concat(m.Nops[1], m.Nops[n-1])) // nop; nop
		armable.add(arch.Tail, pad(n, OpNop, OpRet))                  // nop; ret; int3 x (n-2)
		test.add(arch.Call, slices.Concat(xorEAX, m.Nops[n-2]))       // xor %eax,%eax; nop
		if n > len(xorEAX) {
			test.add(arch.Tail, pad(n, 0x31, 0xc0, OpRet)) // xor %eax,%eax; ret; int3 x (n-3)
		}
	}
	probe.add(arch.CondTail, slices.Concat([]byte{0x70, 0x01, 0xc3}, m.Nops[3])) // jcc over; ret; over: nop
	test.add(arch.CondTail, []byte{0x70, 0x04, 0x31, 0xc0, 0xc3, 0xcc})          // jcc over; xor %eax,%eax; ret; int3; over:
	armable.add(arch.CondTail, []byte{0x70, 0x02, 0x90, 0xc3, 0x66, 0x90})       // jcc over; nop; ret; over: xchg %ax,%ax
	d.armable[arch.Enabled] = d.plain[arch.Enabled]
	nop := m.Nops[branchLen]
	d.mark = forms.Mark{
		Nops: [][]byte{nop, armable.length(arch.Call, branchLen)}, Align: 1,
		Want: "a nop", Fix: fmt.Sprintf("mark the first byte of a nop % x", nop),
	}
	if m.Header != nil {
		probe.add(arch.Call, m.Header)
		d.mark.Nops = slices.Insert(d.mark.Nops, 0, m.Header)
	}
	return d
}

func (f *family) add(form arch.Form, code []byte) { f[form] = append(f[form], slices.Clip(code)) }

// length returns a form of a length.
func (f *family) length(form arch.Form, n int) []byte {
	i := slices.IndexFunc(f[form], func(code []byte) bool { return len(code) == n })
	return f[form][i]
}

// pad fills code up to a length with int3.
func pad(length int, code ...byte) []byte {
	return append(slices.Clip(code), bytes.Repeat([]byte{OpInt3}, length-len(code))...)
}
