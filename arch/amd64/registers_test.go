package amd64

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

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
