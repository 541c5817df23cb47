package links

import (
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// entries has functions of each kind that compilers put a call of a profiler into.
const entries = `
int __attribute__((weak, noinline)) w(int x) { return x + 1; }
__attribute__((cold, noinline)) static int c(int x) { return x * 3; }
static __attribute__((noinline)) int l(int x) { return x > 2 ? c(x) : w(x); }
int g(int x) { return l(x) + l(x + 1); }
`

const entriesMain = `int g(int); int main(void) { return g(2) != 12; }`

// The calls of a profiler at the entries of functions, with the profiler as a stub, are converted on each
// machine; where the profiler takes off the stack what is pushed for it, they are refused.
func TestFunctionEntries(t *testing.T) {
	for _, c := range product.Few(t.Name(), []struct {
		symbol  string
		machine *toolchains.Machine
		flags   string
	}{
		{"__gnu_mcount_nc", toolchains.ARM, "-pg"}, // refused
		{"__fentry__", toolchains.AMD64, "-pg -mfentry"},
		{"mcount", toolchains.AMD64, "-pg"},
		{"_mcount", toolchains.ARM64, "-pg"},
		{"__fentry__", toolchains.S390X, "-pg -mfentry"},
		{"_mcount", toolchains.RISCV64, "-pg"},
		{"_mcount", toolchains.PPC64LE, "-pg -mprofile-kernel"},
		{"_mcount", toolchains.PPC64, "-pg"},
		{"mcount", toolchains.I386, "-pg"},
	}) {
		t.Run(c.machine.Name+c.flags, func(t *testing.T) {
			c.machine.Need(t)
			t.Chdir(t.TempDir())
			disk.Write(t, "entries.c", entries)
			disk.Write(t, "main.c", entriesMain)
			disk.Write(t, "probe.c", "int sdt_"+c.symbol+";\n")
			cc := c.machine.CC(toolchains.GCC)
			gcc := func(args ...string) { tools.Must(t, cc[0], slices.Concat(cc[1:], args)...) }
			gcc(append(strings.Fields(c.flags), "-O2", "-ffunction-sections", "-c", "entries.c")...)
			convert := []string{"--symbol", c.symbol, "--layout", "pairs", "-v", "entries.o"}
			if c.machine == toolchains.ARM {
				before := disk.Read(t, "entries.o")
				tools.Refuses(t, "takes off the stack what code pushes before its call; do not give it with --symbol", converter, convert...)
				expect.Equal(t, string(before), string(disk.Read(t, "entries.o")), "the refused object")
				return
			}
			sites := strings.Count(tools.Must(t, converter, convert...), ": call ")
			expect.Equal(t, 4, sites, "converted calls")
			gcc("-static", "-o", "program", "entries.o", "main.c", "probe.c")
			run := c.machine.Command("./program")
			tools.Must(t, run[0], run[1:]...)
			listing := tools.Must(t, converter, "list", "-v", "program")
			expect.Equal(t, sites, strings.Count(listing, "  disabled"), "listed sites: %s", listing)
		})
	}
}
