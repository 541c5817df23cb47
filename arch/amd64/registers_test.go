package amd64

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

// registerNames are the parts of each general register, those that fill it first.
func registerNames() (names [16][]string) {
	for i, n := range strings.Fields("AX CX DX BX SP BP SI DI") {
		low := n
		if i >= 4 {
			low += "B"
		} else {
			low = n[:1] + "L"
			names[i] = []string{n[:1] + "H"}
		}
		names[i] = append([]string{"R" + n, "E" + n, n, low}, names[i]...)
	}
	for i := 8; i < 16; i++ {
		names[i] = []string{fmt.Sprintf("R%d", i), fmt.Sprintf("R%dL", i), fmt.Sprintf("R%dW", i), fmt.Sprintf("R%dB", i)}
	}
	return names
}

// TestGeneralRegisters compares the sets of registers with the names of all that the decoder has.
func TestGeneralRegisters(t *testing.T) {
	wanted := map[string][3]reg{}
	for r, names := range registerNames() {
		for i, name := range names {
			want := [3]reg{reg(r), noReg, noReg}
			if i == 0 {
				want[1] = reg(r)
			}
			if i <= 1 {
				want[2] = reg(r)
			}
			wanted[name] = want
		}
	}
	found := 0
	for r := range x86asm.Reg(255) {
		want, ok := wanted[r.String()]
		if !ok {
			want = [3]reg{noReg, noReg, noReg}
		} else {
			found++
		}
		expect.Equal(t, want, [3]reg{general(r), whole(r), filled(r)}, "general, whole and filled of %v", r)
	}
	expect.Equal(t, len(wanted), found, "registers of the decoder")
}

// TestBitmap compares bitmaps with maps.
func TestBitmap(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 62))
	for _, size := range []uint64{0, 1, 63, 64, 65, 200} {
		b, want := newBitmap(size), map[uint64]bool{}
		for range 20 {
			off := r.Uint64N(size + 70)
			b.add(off)
			want[off] = off < size
			if r.IntN(8) == 0 {
				from, to := r.Uint64N(size+2), r.Uint64N(size+70)
				b.addAll(from, to)
				for ; from < to; from++ {
					want[from] = from < size
				}
			}
			for range 40 {
				from, to := r.Uint64N(size+70), r.Uint64N(size+140)
				expect.Equal(t, want[from], b.has(from), "%d of %d", from, size)
				in := false
				for at := from; at < to; at++ {
					in = in || want[at]
				}
				expect.Equal(t, in, b.any(from, to), "%d to %d of %d", from, to, size)
			}
		}
	}
}

// TestWhole64 names bytes of r8 to r15 alone by their registers.
func TestWhole64(t *testing.T) {
	for n := range 20 {
		word, want := fmt.Sprintf("r%db", n), fmt.Sprintf("r%db", n)
		if n >= 8 && n <= 15 {
			want = fmt.Sprintf("r%d", n)
		}
		expect.Equal(t, want, whole64(word))
	}
	for _, word := range []string{"al", "sil", "r8", "r8d", "r08b", "8b", "rb", "rr8b", "r8bb", "b", ""} {
		expect.Equal(t, word, whole64(word))
	}
}

// TestRegistersOfInstructions lists what instructions do to general registers.
func TestRegistersOfInstructions(t *testing.T) {
	for _, c := range []struct {
		code, asm  string
		overwrites bool   // the whole first operand, whatever it was
		changes    uint16 // registers, and of a multiplication those of its long form
		implicit   uint16 // registers besides the operands
	}{
		{"b8 01 00 00 00", "mov $0x1,%eax", true, 1 << 0, 0},
		{"66 b8 01 00", "mov $0x1,%ax", false, 1 << 0, 0},
		{"48 8b 03", "mov (%rbx),%rax", true, 1 << 0, 0},
		{"48 8b 00", "mov (%rax),%rax", false, 1 << 0, 0},
		{"48 8b 04 03", "mov (%rbx,%rax),%rax", false, 1 << 0, 0},
		{"48 89 03", "mov %rax,(%rbx)", false, 0, 0},
		{"4c 8d 63 08", "lea 0x8(%rbx),%r12", true, 1 << 12, 0},
		{"4d 8d 64 24 08", "lea 0x8(%r12),%r12", false, 1 << 12, 0},
		{"0f b6 c3", "movzbl %bl,%eax", true, 1 << 0, 0},
		{"0f b6 c0", "movzbl %al,%eax", false, 1 << 0, 0},
		{"31 c0", "xor %eax,%eax", true, 1 << 0, 0},
		{"31 d8", "xor %ebx,%eax", false, 1 << 0, 0},
		{"48 29 db", "sub %rbx,%rbx", true, 1 << 3, 0},
		{"48 01 db", "add %rbx,%rbx", false, 1 << 3, 0},
		{"48 6b c3 03", "imul $0x3,%rbx,%rax", true, 1<<0 | 1<<2, 0},
		{"48 6b c0 03", "imul $0x3,%rax,%rax", false, 1<<0 | 1<<2, 0},
		{"48 0f af c3", "imul %rbx,%rax", false, 1<<0 | 1<<2, 0},
		{"48 f7 eb", "imul %rbx", false, 1<<0 | 1<<2 | 1<<3, 1<<0 | 1<<2},
		{"48 f7 e3", "mul %rbx", false, 1<<0 | 1<<2 | 1<<3, 1<<0 | 1<<2},
		{"48 99", "cqto", false, 1<<0 | 1<<2, 1<<0 | 1<<2},
		{"41 5c", "pop %r12", true, 1 << 12, 0},
		{"53", "push %rbx", false, 0, 0},
		{"48 39 d8", "cmp %rbx,%rax", false, 0, 0},
		{"48 93", "xchg %rbx,%rax", false, 1<<0 | 1<<3, 0},
		{"48 0f c1 d8", "xadd %rbx,%rax", false, 1<<0 | 1<<3, 0},
		{"48 0f 44 d8", "cmove %rax,%rbx", false, 1 << 3, 0},
		{"f3 48 ab", "rep stos %rax,%es:(%rdi)", false, 1<<0 | 1<<1 | 1<<7, 1<<0 | 1<<1 | 1<<7},
		{"c9", "leave", false, 1 << 5, 1<<4 | 1<<5},
		{"0f a2", "cpuid", false, allRegs, allRegs},
		{"f2 0f 2c c3", "cvttsd2si %xmm3,%eax", true, 1 << 0, 0},
		{"66 0f fe c1", "paddd %xmm1,%xmm0", false, 0, 0},
		{"66 41 0f 7e c4", "movd %xmm0,%r12d", true, 1 << 12, 0},
	} {
		inst := expect.Value(x86asm.Decode(unhex(t, c.code), 64))(t)
		in := instruction{Inst: inst, jump: -1}
		var implicit uint16
		for r := range reg(16) {
			if in.implicit(1 << r) {
				implicit |= 1 << r
			}
		}
		got := []any{in.overwrites(), fmt.Sprintf("%#x", in.changes()), fmt.Sprintf("%#x", implicit)}
		expect.Equal(t, []any{c.overwrites, fmt.Sprintf("%#x", c.changes), fmt.Sprintf("%#x", c.implicit)}, got, "%s", c.asm)
	}
	loop := instruction{Inst: x86asm.Inst{Op: x86asm.LOOP}, jump: 3}
	expect.Equal(t, 1<<1, loop.changes(), "a jump that counts")
}

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
