package machines

import (
	"math/rand/v2"
	"testing"

	"sdtconvert/arch"
)

// Code may be anything, and end anywhere. What is told lies in the range that was asked for,
// and of instructions in the code.
func TestReadsOfAnyCode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	code := make([]byte, 1<<14)
	for i := range code {
		code[i] = byte(random.Uint32())
	}
	for _, m := range all {
		reader, ok := m.(arch.Reader)
		if !ok {
			continue
		}
		const pc, lo, hi = 0x10000, 0x8000, 0x40000
		check := func(at, address uint64) {
			if at < pc || at >= pc+uint64(len(code)) || address < lo || address >= hi {
				t.Errorf("%s: %#x reads %#x", m.Traits().Name, at, address)
			}
		}
		for n := range 256 {
			reader.Reads(code[:n], pc, 0x20000, lo, hi, check)
		}
		reader.Reads(code, pc, 0x20000, lo, hi, check)
		reader.Reads(code, pc, 0x20000, hi, lo, func(at, address uint64) { t.Errorf("%s: an empty range has %#x", m.Traits().Name, address) })
	}
}
