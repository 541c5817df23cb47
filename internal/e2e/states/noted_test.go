package states

import (
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// noted is a program with the probes of SystemTap's header and of a provider file: in functions that another file shares, in code that the
// linker drops, and in a section without relocations.
var noted = map[string]string{
	"provided.d": "provider provided { probe shared(int); };\n",
	"noted.h": `#include <sys/sdt.h>
#include "provided.h"
template <typename T> __attribute__((noinline)) T shared(T n) {
	if (PROVIDED_SHARED_ENABLED()) PROVIDED_SHARED(n);
	DTRACE_PROBE1(noted, shared, n);
	return n + 1;
}
static __attribute__((noinline)) int local(int n) { if (PROVIDED_SHARED_ENABLED()) PROVIDED_SHARED(n); return n - 3; }
int other(int n);
`,
	"one.cc": `#include "noted.h"
static volatile int sum;
static __attribute__((noinline)) int leaf(int n) { DTRACE_PROBE2(noted, leaf, n, sum); return n * 2; }
__attribute__((noinline)) int dropped(int n) { DTRACE_PROBE1(noted, dropped, n); return n; }
int main(int argc, char **argv) { sum = leaf(argc) + local(argc) + shared(argc) + shared(2L) + other(argc); DTRACE_PROBE(noted, end); return sum == 77; }
`,
	"two.cc": `#include "noted.h"
namespace { __attribute__((noinline)) int hidden(int n) { DTRACE_PROBE1(noted, hidden, n); return n - 1; } }
int other(int n) { return hidden(n) + local(n) + shared(n); }
`,
}

// The functions of sites that only notes describe outlive strip, too.
func TestNotedSites(t *testing.T) {
	for _, m := range product.Few(t.Name(), toolchains.Machines) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, m.Tools("g++", "strip")...)
			f := newDirectory(t)
			for name, text := range noted {
				f.write(name, text)
			}
			f.convert("provider", "-h", "-s", "provided.d", "-o", "provided.h")
			f.must(m.Tool("g++"), "-O2", "-ffunction-sections", "-fno-exceptions", "-idirafter", "/usr/include/x86_64-linux-gnu", "-c", "one.cc", "two.cc")
			f.convert("one.o", "two.o")
			f.must("cp", "one.o", "once.o")
			f.convert("one.o")
			f.must("cmp", "one.o", "once.o")
			for _, l := range m.Newest() {
				tools.Need(t, l.Path)
				collect := "-Wl,--gc-sections"
				if l.Name == "gold" {
					collect = "-Wl,--no-gc-sections" // it does not link notes of what it has dropped
				}
				f.must(append([]string{m.Tool("g++"), "-B" + tools.Driver(t, l.Path), collect, "-o", "in", "one.o", "two.o"}, m.LinkFlags...)...)
				f.must(m.Tool("strip"), "-s", "-o", "out", "in")
				whole, got := f.sitesOf("in"), f.sitesOf("out")
				if len(whole) < 9 || len(got) != len(whole) {
					t.Errorf("%s: %d sites, and %d", l.Name, len(whole), len(got))
				}
				f.compareFunctions(l.Name, tools.Output(t, "nm", filepath.Join(f.path, "in"))+"\n", whole, got)
			}
		})
	}
}
