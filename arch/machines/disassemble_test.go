package machines_test

import (
	"sync"
	"testing"

	"sdtconvert/arch/machines"
)

// TestDisassembleAtOnce has several goroutines disassemble, which the race detector judges: decoders of
// golang.org/x/arch write package-level variables.
func TestDisassembleAtOnce(t *testing.T) {
	for _, m := range machines.All() {
		t.Run(m.Traits().Name, func(t *testing.T) {
			code := make([]byte, 64)
			for i := range code {
				code[i] = byte(i * 37)
			}
			want := len(m.Disassemble(code, 0))
			var running sync.WaitGroup
			for range 4 {
				running.Go(func() {
					for range 100 {
						if got := len(m.Disassemble(code, 0)); got != want {
							t.Errorf("%d instructions, want %d", got, want)
						}
					}
				})
			}
			running.Wait()
		})
	}
}
