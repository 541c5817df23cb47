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
