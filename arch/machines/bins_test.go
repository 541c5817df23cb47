package machines_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm64"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// binsProgram calls trampolines with values, and prints which counter each has counted up.
const binsProgram = `
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
struct code { const unsigned char *bytes; unsigned size; };
static const struct code codes[] = { CODES };
static const uint64_t values[] = { VALUES };
int main(void)
{
	unsigned char *at = mmap((void *)ADDRESS, 1 << 16, PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, -1, 0);
	uint64_t *counters = mmap((void *)COUNTERS, 1 << 16, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, -1, 0);
	if (at != (void *)ADDRESS || counters != (void *)COUNTERS)
		return 2;
	counters[(1 << 13) - 1] = 1; /* the tracer lives */
	for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		memcpy(at, codes[i].bytes, codes[i].size);
		__builtin___clear_cache((char *)at, (char *)at + codes[i].size);
		for (unsigned k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			((void (*)(uint64_t))at)(values[k]);
			for (int n = 0; n < 1100; n++)
				for (; counters[n] > 0; counters[n]--)
					printf("%d ", n);
		}
		printf("\n");
	}
	return 0;
}
`

// Trampolines count in the range that holds the value, of all sizes and signs.
func TestBins(t *testing.T) {
	const address, counters = 0x10000000, 0x20000000
	ranges := []arch.Ranges{
		{}, {Low: 0, High: 100, Width: 10}, {Low: -5, High: 6, Width: 4}, {Low: 3, High: 4, Width: 1}, {Low: -300, High: -100, Width: 7},
		{Low: math.MinInt64, High: math.MaxInt64, Width: 1 << 60}, {Low: 1, High: math.MaxInt64, Width: math.MaxInt64}, {Low: 0, High: 1000, Width: 1},
	}
	r := rand.New(rand.NewPCG(3, 3))
	var values []uint64
	for _, bounds := range ranges {
		for _, bound := range []int64{bounds.Low, bounds.High, bounds.Low + bounds.Width, bounds.Low + 2*bounds.Width} {
			values = append(values, uint64(bound-1), uint64(bound), uint64(bound+1))
		}
	}
	for i := range 64 {
		values = append(values, r.Uint64()>>i, 1<<i, 1<<i-1, -(1 << i))
	}
	var bins []arch.Bins
	for _, one := range ranges {
		for size := range 4 {
			for _, signed := range []bool{false, true} {
				bins = append(bins, arch.Bins{Ranges: one, Operand: arch.Operand{Kind: arch.InRegister, Size: 1 << size, Signed: signed, Index: -1}})
			}
		}
	}
	bins = append(bins, arch.Bins{}) // of an argument that cannot be read
	for _, c := range []struct {
		machine  arch.Machine
		register string
		compiler string
		run      []string
	}{
		{amd64.Machine, "rdi", "gcc", nil},
		{arm64.Machine{}, "x0", "aarch64-linux-gnu-gcc", []string{"qemu-aarch64-static"}},
	} {
		t.Run(c.machine.Traits().Name, func(t *testing.T) {
			tools.Need(t, append(c.run, c.compiler)...)
			var arrays, codes, numbers strings.Builder
			for i, b := range bins {
				b.Base = c.machine.Traits().Threads.Registers()[c.register]
				code := c.machine.(arch.Jumper).Trampoline(&arch.Trampoline{
					Address: address, Counters: counters, Alive: counters + 1<<16 - 8, Bins: &b, Ring: arch.Ring{Count: 1, Stride: 1 << 14},
				})
				fmt.Fprintf(&arrays, "static const unsigned char code%d[] = {", i)
				for _, one := range code {
					fmt.Fprintf(&arrays, "%d,", one)
				}
				fmt.Fprintf(&arrays, "};\n")
				fmt.Fprintf(&codes, "{code%d, %d},", i, len(code))
			}
			for _, value := range values {
				fmt.Fprintf(&numbers, "%#xu,", value)
			}
			text := strings.NewReplacer("CODES", codes.String(), "VALUES", numbers.String(), "ADDRESS", fmt.Sprint(address), "COUNTERS", fmt.Sprint(counters)).Replace(binsProgram)
			path := filepath.Join(t.TempDir(), "bins")
			expect.OK(t, os.WriteFile(path+".c", []byte(arrays.String()+text), 0o666))
			tools.Must(t, c.compiler, "-static", "-O1", "-o", path, path+".c")
			run := append(c.run, path)
			lines := strings.Split(strings.TrimSpace(tools.Output(t, run[0], run[1:]...)), "\n")
			expect.Equal(t, len(bins), len(lines))
			for i, b := range bins {
				got := strings.Fields(lines[i])
				expect.Equal(t, len(values), len(got), "%+v", b)
				for k, value := range values {
					want := b.Unread()
					if shift := 64 - 8*b.Size; b.Size > 0 && b.Signed {
						want = b.Of(uint64(int64(value<<shift)>>shift), true)
					} else if b.Size > 0 {
						want = b.Of(value<<shift>>shift, false)
					}
					if got[k] != strconv.Itoa(want) {
						t.Fatalf("%#x in %+v: counter %s, want %d", value, b, got[k], want)
					}
				}
			}
		})
	}
}
