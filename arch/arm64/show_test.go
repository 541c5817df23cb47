package arm64

import (
	"debug/elf"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
)

func TestDisassembleShowsWhatIsNoInstructionAsData(t *testing.T) {
	got := Machine{}.Disassemble(words(0xd503201f, 0xffffffff, 0xd65f03c0), 0)
	if diff := cmp.Diff([]string{"nop", ".inst 0xffffffff", "ret"}, got); diff != "" {
		t.Error(diff)
	}
}

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

func TestDataRelocations(t *testing.T) {
	for typ, want := range map[elf.R_AARCH64]arch.DataReloc{
		elf.R_AARCH64_ABS64: {Size: 8}, elf.R_AARCH64_ABS32: {Size: 4}, elf.R_AARCH64_CALL26: {},
	} {
		if got := (Machine{}).DataReloc(uint32(typ)); got != want {
			t.Errorf("%v: got %+v, want %+v", typ, got, want)
		}
	}
}
