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
				Machine{}.Disassemble([]byte("\x1f\x20\x03\xd5\x00\x00\x80\x52"), 0)
			}
		})
	}
	wg.Wait()
}
