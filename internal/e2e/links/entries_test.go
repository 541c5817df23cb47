package links

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
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
	for _, c := range product.Few(t.Name(), []struct{ symbol, emulator, compiler string }{
		{"__gnu_mcount_nc", "", "arm-linux-gnueabihf-gcc -pg"}, // refused
		{"__fentry__", "", "gcc -pg -mfentry"},
		{"mcount", "", "gcc -pg"},
		{"_mcount", "qemu-aarch64-static", "aarch64-linux-gnu-gcc -pg"},
		{"__fentry__", "qemu-s390x-static", "s390x-linux-gnu-gcc -pg -mfentry"},
		{"_mcount", "qemu-riscv64-static", "riscv64-linux-gnu-gcc -pg"},
		{"_mcount", "qemu-ppc64le-static", "powerpc64le-linux-gnu-gcc -pg -mprofile-kernel"},
		{"_mcount", "qemu-ppc64-static", "powerpc64-linux-gnu-gcc -pg"},
		{"mcount", "qemu-i386-static", "i686-linux-gnu-gcc -pg"},
	}) {
		t.Run(c.compiler, func(t *testing.T) {
			words := strings.Fields(c.compiler)
			tools.Need(t, words[0])
			t.Chdir(t.TempDir())
			disk.Write(t, "entries.c", entries)
			disk.Write(t, "main.c", entriesMain)
			disk.Write(t, "probe.c", "int sdt_"+c.symbol+";\n")
			gcc := func(args ...string) string { return tools.Must(t, words[0], append(words[1:], args...)...) }
			gcc("-O2", "-ffunction-sections", "-c", "entries.c")
			convert := []string{"--symbol", c.symbol, "--layout", "pairs", "-v", "entries.o"}
			if strings.HasPrefix(c.compiler, "arm") {
				before := disk.Read(t, "entries.o")
				tools.Refuses(t, "takes off the stack what code pushes before its call; do not give it with --symbol", converter, convert...)
				expect.Equal(t, string(before), string(disk.Read(t, "entries.o")), "the refused object")
				return
			}
			sites := strings.Count(tools.Must(t, converter, convert...), ": call ")
			expect.Equal(t, 4, sites, "converted calls")
			tools.Must(t, words[0], "-static", "-o", "program", "entries.o", "main.c", "probe.c")
			run := []string{"./program"}
			if c.emulator != "" {
				tools.Need(t, c.emulator)
				run = []string{c.emulator, "./program"}
			}
			tools.Must(t, run[0], run[1:]...)
			listing := tools.Must(t, converter, "list", "-v", "program")
			expect.Equal(t, sites, strings.Count(listing, "  disabled"), "listed sites: %s", listing)
		})
	}
}
