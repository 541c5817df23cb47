package debuginfo_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// calledDifferently calls one function by two declarations, each in its block.
const calledDifferently = `
#define CALL1(a) do { extern void one(int) __asm__("away"); one(a); } while (0)
#define CALL2(a, b) do { extern void two(int, int) __asm__("away"); two(a, b); } while (0)
void f(int n) { CALL1(n); CALL2(n, 3); CALL1(n + 1); }
int g(int n) { if (n > 3) { CALL2(n, n); CALL2(n, n + 1); } return n; }
`

// GCC describes each call, which objdump finds by its relocation.
func TestCalls(t *testing.T) {
	for _, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, m.Tool("gcc"), m.Tool("objdump"))
			for _, flags := range []string{"-O0", "-O2 -fno-inline", "-O2 -gdwarf-4", "-Os -fno-optimize-sibling-calls"} {
				directory := t.TempDir()
				source, object := filepath.Join(directory, "a.c"), filepath.Join(directory, "a.o")
				disk.Write(t, source, calledDifferently)
				tools.Must(t, m.Tool("gcc"), append(strings.Fields(flags), "-g", "-c", "-o", object, source)...)
				o := objects.Open(t, disk.Read(t, object))
				machine := machines.Lookup(o.ABI())
				table := expect.Value(debuginfo.New(o, machine))(t)
				calls := expect.Value(table.Calls(func(name string) bool { return name == "away" }))(t)
				expect.Equal(t, "[away] [1 2]", fmt.Sprint(calls.Functions(), calls.Numbers("away")))
				text := slices.IndexFunc(o.Sections, func(s elfreloc.Section) bool { return s.Name == ".text" })
				got := []int{}
				for _, at := range relocationsOf(t, m, object, "away") {
					n, exact, ok := calls.Parameters("away", text, at)
					if !ok || !exact {
						t.Errorf("%s: %#x: %d, %v, %v", flags, at, n, exact, ok)
					}
					got = append(got, n)
				}
				expect.Equal(t, "[1 2 1 2 2]", fmt.Sprint(got), "%s", flags)
			}
		})
	}
}

// relocationsOf returns where code refers to a symbol, as objdump lists it, sorted.
func relocationsOf(t *testing.T, m *toolchains.Machine, object, symbol string) (offsets []uint64) {
	t.Helper()
	for _, line := range strings.Split(tools.Output(t, m.Tool("objdump"), "-r", "-j", ".text", object), "\n") {
		var at uint64
		if _, err := fmt.Sscanf(line, "%x R_", &at); err == nil && strings.Contains(line, symbol) {
			offsets = append(offsets, at)
		}
	}
	slices.Sort(offsets)
	return slices.Compact(offsets)
}
