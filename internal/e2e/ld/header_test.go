package ld

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

const withHeader = `
#include <sdt.h>
SDT_PROVIDER_DEFINE(shop);
SDT_PROBE_DEFINE1(shop, , , placed, "int");
void other(int);
void show_all(void);
int main(int argc, char **argv)
{
	(void)argv;
	SDT_PROBE1(shop, , , placed, argc);
	other(argc);
	show_all();
	return 0;
}
`

const otherWithHeader = `
#include <sdt.h>
SDT_PROVIDER_DECLARE(shop);
SDT_PROBE_DEFINE1(shop, , , sent, "int");
void other(int n) { if (SDT_PROBE_ENABLED(shop, , , sent)) SDT_PROBE1(shop, , , sent, n); }
`

// The stubs of sdt.h are hidden, which lld does not let pass as undefined if they are called.
func TestHeaderLTO(t *testing.T) {
	for _, lto := range toolchains.LTOs() {
		l, compiler := lto.Linker, lto.Compiler.Name
		t.Run(compiler+l.Path+lto.Flag, func(t *testing.T) {
			tools.Need(t, compiler, l.Path)
			enter(t, l.Path)
			disk.Write(t, "shop.c", withHeader)
			disk.Write(t, "other.c", otherWithHeader)
			disk.Write(t, "show.c", "#include \"show.h\"\nvoid show_all(void) { show(\"main\"); }\n")
			args := []string{"-B" + wrappers, l.Use(), lto.Flag, "-O2", "-I" + tools.Root("include"), "shop.c", "other.c", "show.c"}
			for _, more := range []string{"", "-Wl,--fatal-warnings", "-Wl,--gc-sections", "-DSDT_CALLS -DSDT_NO_SEMAPHORES"} {
				tools.Must(t, compiler, append(args, strings.Fields(more+" -o program")...)...)
				expectAll(t, "program", "main:shop:placed main:shop:sent")
			}
			// What is missing is missing in the end.
			disk.Write(t, "undefined.c", "__attribute__((visibility(\"hidden\"))) void nowhere(void); void f(void) { nowhere(); }\n")
			tools.Refuses(t, "nowhere", compiler, append(args, "undefined.c", "-Wl,--undefined=f", "-o", "none")...)
			disk.Absent(t, "none")
		})
	}
}
