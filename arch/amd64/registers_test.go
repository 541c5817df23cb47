package amd64

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
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

// TestReads compares the words that instructions read with the decoder of golang.org/x/arch.
func TestReads(t *testing.T) {
	const pc = 0x10000
	r := rand.New(rand.NewPCG(4, 62))
	for range 2000 {
		form := []struct {
			opcode    []byte
			extension byte // of the opcode, 8 for a register
			immediate int
		}{
			{[]byte{0x0f, 0xb7}, 8, 0}, {[]byte{0x0f, 0xbf}, 8, 0}, {[]byte{0x66, 0x8b}, 8, 0}, {[]byte{0x66, 0x3b}, 8, 0},
			{[]byte{0x66, 0x39}, 8, 0}, {[]byte{0x66, 0x85}, 8, 0}, {[]byte{0x66, 0x83}, 7, 1}, {[]byte{0x66, 0x81}, 7, 2}, {[]byte{0x66, 0xf7}, 0, 2},
		}[r.IntN(9)]
		extension := form.extension
		if extension == 8 {
			extension = byte(r.IntN(8))
		}
		code := append([]byte{0x90}, form.opcode...)
		if r.IntN(2) == 0 {
			code = append(code, extension<<3|5) // disp32(%rip)
		} else {
			code = append(code, extension<<3|4, 0x25) // disp32
		}
		field := len(code)
		code = binary.LittleEndian.AppendUint32(code, r.Uint32())
		code = append(code, make([]byte, form.immediate)...)
		inst := expect.Value(x86asm.Decode(code[1:], 64))(t)
		expect.Equal(t, len(code)-1, inst.Len, "% x", code)
		var want uint64
		for _, arg := range inst.Args {
			if m, ok := arg.(x86asm.Mem); ok {
				want = uint64(int64(int32(m.Disp)))
				if m.Base == x86asm.RIP {
					want += pc + 1 + uint64(inst.Len)
				}
			}
		}
		for _, c := range []struct {
			lo, hi uint64
			found  int
		}{{want, want + 1, 1}, {want - 4, want, 0}, {want + 1, want + 4, 0}} {
			if c.hi < c.lo {
				continue // around the end of numbers
			}
			found := 0
			Machine{}.Reads(code, pc, 0, c.lo, c.hi, func(at, address uint64) {
				if at == pc+uint64(field) && address == want {
					found++
				}
			})
			expect.Equal(t, c.found, found, "% x reads %#x, of %#x to %#x", code, want, c.lo, c.hi)
		}
	}
}
