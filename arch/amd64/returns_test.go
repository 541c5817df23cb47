package amd64

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

// stackCode writes the code behind a call at random, and knows who reads the return address.
type stackCode struct {
	*rand.Rand
	code    []byte
	moved   int  // how far the stack pointer is from where it was behind the call
	over    bool // nothing behind is looked at
	refused bool
}

func (c *stackCode) emit(code ...byte) { c.code = append(c.code, code...) }

// disp returns the ModRM byte and the rest of an operand that is relative to %rsp.
func (c *stackCode) disp(register byte, at int) []byte {
	if at == int(int8(at)) && c.IntN(4) > 0 {
		return []byte{0x44 | register<<3, 0x24, byte(at)}
	}
	return binary.LittleEndian.AppendUint32([]byte{0x84 | register<<3, 0x24}, uint32(at))
}

// access reads or stores a number of bytes relative to %rsp, or does neither.
func (c *stackCode) access(at int) {
	if c.over {
		return
	}
	from := c.moved + at
	in := func(size int) bool { return from < 0 && from+size > -8 }
	switch c.IntN(10) {
	case 0: // mov n(%rsp), %rax
		c.read(in(8), append([]byte{0x48, 0x8b}, c.disp(0, at)...))
	case 1: // cmp %al, n(%rsp)
		c.read(in(1), append([]byte{0x38}, c.disp(0, at)...))
	case 2: // add %ecx, n(%rsp)
		c.read(in(4), append([]byte{0x01}, c.disp(1, at)...))
	case 3: // movzwl n(%rsp), %ebx
		c.read(in(2), append([]byte{0x0f, 0xb7}, c.disp(3, at)...))
	case 4: // push n(%rsp)
		c.read(in(8), append([]byte{0xff}, c.disp(6, at)...))
		c.move(-8)
	case 5: // mov %rdx, n(%rsp)
		c.emit(append([]byte{0x48, 0x89}, c.disp(2, at)...)...)
		c.over = c.over || in(8)
	case 6: // movb $0, n(%rsp)
		c.emit(append(append([]byte{0xc6}, c.disp(0, at)...), 0)...)
		c.over = c.over || in(1)
	case 7: // lea n(%rsp), %rdi
		c.emit(append([]byte{0x48, 0x8d}, c.disp(7, at)...)...)
	case 8: // lock orl $0, n(%rsp)
		c.emit(append(append([]byte{0xf0, 0x83}, c.disp(1, at)...), 0)...)
	case 9: // mov %gs:n(%rsp), %rax
		c.emit(append([]byte{0x65, 0x48, 0x8b}, c.disp(0, at)...)...)
	}
}

func (c *stackCode) read(slot bool, code []byte) {
	c.emit(code...)
	c.refused, c.over = c.refused || slot && !c.over, c.over || slot
}

// move moves the stack pointer; what is pushed takes the place of the return address.
func (c *stackCode) move(by int) {
	c.moved += by
	c.over = c.over || c.moved < 0
}

// step writes one instruction.
func (c *stackCode) step() {
	n := 8 * c.IntN(3)
	switch k := c.IntN(24); {
	case k < 10:
		c.access(-c.moved - 16 + c.IntN(24))
	case k < 12: // push %rbx; pushfq
		c.emit([]byte{0x53, 0x9c}[k%2])
		c.move(-8)
	case k < 15: // pop %rbx; popfq
		c.emit([]byte{0x5b, 0x9d}[k%2])
		c.move(8)
	case k < 17: // add $n, %rsp
		c.emit(0x48, 0x83, 0xc4, byte(n))
		c.move(n)
	case k < 18: // sub $n, %rsp
		c.emit(0x48, 0x83, 0xec, byte(n))
		c.move(-n)
	case k < 21: // cmp %rsp, %rax; cmp %rax, %rsp; test %rsp, %rsp
		c.emit([][]byte{{0x48, 0x39, 0xe0}, {0x48, 0x39, 0xc4}, {0x48, 0x85, 0xe4}}[k-18]...)
	case k < 22: // mov -8(%rbp), %rax; mov -8(%rsp,%rcx), %rax
		c.emit([][]byte{{0x48, 0x8b, 0x45, 0xf8}, {0x48, 0x8b, 0x44, 0x0c, 0xf8}}[c.IntN(2)]...)
	case k < 23 && c.IntN(8) == 0: // nothing is known behind
		c.emit([][]byte{
			{0xc3}, {0xc9}, {0x5c}, {0xeb, 0x00}, {0x74, 0x00}, {0xff, 0xd0}, {0xff, 0xe0}, {0x06}, // ret; leave; pop %rsp; jmp; je; call; jmp; none
			{0x48, 0x89, 0xec}, {0x48, 0x01, 0xc4}, {0x48, 0x29, 0xc4}, {0x48, 0x83, 0xe4, 0xf0}, // mov, add, sub, and to %rsp
		}[c.IntN(12)]...)
		c.over = true
	}
}

// TestReturnsThatAreRead compares what is refused with what random code behind calls reads.
func TestReturnsThatAreRead(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 62))
	refused := 0
	for range 20000 {
		c := &stackCode{Rand: r}
		for range r.IntN(12) {
			c.step()
		}
		call := []byte{0xe8, 0, 0, 0, 0}
		text := arch.Text{Start: uint64(r.IntN(2) * 0x100), Code: append(call, c.code...)}
		site := arch.Site{Offset: text.Start, Code: call}
		got := machine{mode}.CallCheck(text)(site, arch.Probe)
		if (got != nil) != c.refused {
			t.Fatalf("behind a call % x: %v, want refused %v", c.code, got, c.refused)
		}
		if got != nil {
			refused++
		}
		site.Form = arch.Tail
		expect.Equal(t, nil, machine{mode}.CallCheck(text)(site, arch.Probe), "of a tail call")
	}
	if refused < 1000 {
		t.Errorf("%d are refused", refused)
	}
}

// TestReturnsOfManyCalls compares the check of many calls of one text, in their order and in none, with that of each alone.
func TestReturnsOfManyCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 63))
	refused := 0
	for range 500 {
		c := &stackCode{Rand: r}
		var sites []arch.Site
		for range 1 + r.IntN(40) {
			sites = append(sites, arch.Site{Offset: uint64(len(c.code)), Code: []byte{0xe8, 0, 0, 0, 0}})
			c.emit(0xe8, 0, 0, 0, 0)
			for range r.IntN(12) {
				c.step()
			}
			c.moved, c.over = 0, false
		}
		text := arch.Text{Code: c.code}
		inOrder, inNone := machine{mode}.CallCheck(text), machine{mode}.CallCheck(text)
		for i, site := range sites {
			other := sites[r.IntN(len(sites))]
			alone := machine{mode}.CallCheck(text)(site, arch.Probe)
			expect.Equal(t, alone != nil, inOrder(site, arch.Probe) != nil, "site %d of % x", i, c.code)
			expect.Equal(t, machine{mode}.CallCheck(text)(other, arch.Probe) != nil, inNone(other, arch.Probe) != nil, "site at %d of % x", other.Offset, c.code)
			if alone != nil {
				refused++
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d are refused", refused)
	}
}
