package arm64

import (
	"sync"
	"testing"
)

// The decoder of golang.org/x/arch is not safe for this by itself.
func TestDisassembleInSeveralGoroutines(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				Machine{}.Disassemble(words(0xd503201f, 0x52800000), 0)
			}
		})
	}
	wg.Wait()
}
