package amd64

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/internal/testkit/expect"
)

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
