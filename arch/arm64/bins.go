package arm64

// How a trampoline counts by the value of an argument.

import "sdtconvert/arch"

// countBins counts the value of an argument, and leaves.
func (a *assembly) countBins() {
	b := a.Bins
	dropped, rejected := a.begin()
	var found, unread []int
	switch {
	case b.Size == 0:
		found = append(found, a.bin(b.Unread()))
	case b.MayFault:
		a.guardedValue(&b.Operand)
		unread = append(unread, a.forward(0xb5000001)) // cbnz x1, unread
	default:
		a.value(&b.Operand)
	}
	switch {
	case b.Size == 0:
	case b.Width == 0:
		a.extend(&b.Operand)
		a.power(b.Signed)
	default:
		a.extend(&b.Operand)
		found = append(found, a.linear(b)...)
	}
	if len(unread) > 0 {
		found = append(found, a.forward(always)) // b.al found
		a.land(unread[0])
		a.constant(2, uint64(b.Unread()))
	}
	for _, branch := range found {
		a.land(branch)
	}
	a.ring()
	a.constant(1, uint64(a.Ring.Stride))
	a.constant(3, a.Counters)
	a.add(0x9b000000, rm(1), 3<<10, rn(0)) // madd x0, x0, x1, x3
	a.add(0x8b000000, rm(2), 3<<10, rn(0)) // add x0, x0, x2, lsl #3
	a.increment()
	a.restore()
	for _, branch := range dropped {
		a.land(branch)
	}
	a.restore()
	a.reject(rejected)
}

const always = 0x5400000e // b.al

// bin loads a counter's number into x2, and returns the branch behind what follows.
func (a *assembly) bin(number int) (branch int) {
	a.constant(2, uint64(number))
	return a.forward(always)
}

// power loads into x2 the number of the power of two of x0.
func (a *assembly) power(signed bool) {
	if signed {
		a.add(0x937ffc00, rn(0), 3)     // asr x3, x0, #63
		a.add(0xca000000, rm(3), rn(0)) // eor x0, x0, x3
		a.add(0xcb000000, rm(3), rn(0)) // sub x0, x0, x3
	}
	a.add(0xdac01000, rn(0), 1) // clz x1, x0
	a.constant(2, 64)
	a.add(0xcb000000, rm(1), rn(2), 2) // sub x2, x2, x1
	if signed {
		a.add(0xca000000, rm(3), rn(2), 2) // eor x2, x2, x3
		a.add(0xcb000000, rm(3), rn(2), 2) // sub x2, x2, x3
	}
	a.add(0x91000000, 64<<10, rn(2), 2) // add x2, x2, #64
}

// linear loads into x2 the number of the range of one width that holds x0. It returns branches to what follows.
func (a *assembly) linear(b *arch.Bins) (found []int) {
	var below, above []int
	if condition := map[bool]uint32{false: 3, true: 11}[b.Signed]; b.Signed || b.Low > 0 {
		a.constant(1, uint64(b.Low))
		a.add(0xeb00001f, rm(1), rn(0))                        // cmp x0, x1
		below = append(below, a.forward(0x54000000|condition)) // b.lo or b.lt below
	}
	switch condition := (map[bool]uint32{false: 2, true: 10})[b.Signed]; {
	case b.Signed || b.High > 0:
		a.constant(1, uint64(b.High))
		a.add(0xeb00001f, rm(1), rn(0))                        // cmp x0, x1
		above = append(above, a.forward(0x54000000|condition)) // b.hs or b.ge above
	default:
		above = append(above, a.forward(always)) // b.al above
	}
	a.constant(1, uint64(b.Low))
	a.add(0xcb000000, rm(1), rn(0)) // sub x0, x0, x1
	a.constant(1, uint64(b.Width))
	a.add(0x9ac00800, rm(1), rn(0), 2)       // udiv x2, x0, x1
	a.add(0x91000000, 1<<10, rn(2), 2)       // add x2, x2, #1
	found = append(found, a.forward(always)) // b.al found
	for _, branch := range below {
		a.land(branch)
	}
	if len(below) > 0 {
		found = append(found, a.bin(0))
	}
	for _, branch := range above {
		a.land(branch)
	}
	return append(found, a.bin(b.Unread()-1))
}
