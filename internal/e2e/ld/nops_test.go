package ld

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var (
	noteArgs  = regexp.MustCompile(`Name: (.*)\n.*\n\s*Arguments: ?(.*)\n`)
	nopSymbol = regexp.MustCompile(`(?m) [a-zA-Z] nops:(\w+) (.*) \d+$`)
)

// Marked nops in objects without code: the compiler lists the stubs, because they are
// operands of the assembly.
func TestNopsLTO(t *testing.T) {
	tracers := tools.Root("internal", "e2e", "attach", "testdata")
	all := product.New("compiler", "linker", "flag", "mode")
	for _, lto := range append(toolchains.LTOs(),
		toolchains.LTO{Compiler: toolchains.GCC, Linker: toolchains.AMD64.Linker("bfd"), Flag: "-flto -ffat-lto-objects"},
		toolchains.LTO{Compiler: toolchains.OldClang, Linker: toolchains.AMD64.Linker("old-lld"), Flag: "-flto"},
	) {
		for _, mode := range []string{"-fPIC -pie", "-fno-pic -no-pie", "-fPIC -shared", "-fPIE -pie -Wl,--gc-sections"} {
			l := lto.Linker
			all.Add(lto.Compiler.Name+l.Path+lto.Flag+mode, []string{lto.Compiler.Name, l.Name, lto.Flag, mode}, func(t *testing.T) {
				tools.Need(t, lto.Compiler.Name, lto.Compiler.CXX, l.Path, "readelf", "nm")
				enter(t, l.Path)
				flags := strings.Fields(fmt.Sprintf("-O2 %s %s -I%s", lto.Flag, mode, tracers))
				var objects []string
				for _, source := range []string{"nops.c", "nopscxx.cc", "nopscxx2.cc", "main.c"} {
					compiler, object := lto.Compiler.Name, strings.Split(source, ".")[0]+".o"
					if strings.HasSuffix(source, ".cc") {
						compiler = lto.Compiler.CXX
					}
					tools.Must(t, compiler, append(flags[:len(flags):len(flags)], "-c", "-o", object, tracers+"/"+source)...)
					objects = append(objects, object)
				}
				for _, converts := range []bool{false, true} {
					checkNopsLTO(t, lto.Compiler.CXX, l, append(flags[:len(flags):len(flags)], objects...), converts)
				}
			})
		}
	}
	all.Run(t)
}

// checkNopsLTO links with and without a conversion.
func checkNopsLTO(t *testing.T, compiler string, l toolchains.Linker, args []string, converts bool) {
	t.Helper()
	t.Setenv("SDTCONVERT_FLAGS", "--stapsdt")
	t.Setenv("SDTCONVERT", "")
	if !converts {
		t.Setenv("SDTCONVERT", "off")
	}
	tools.Must(t, compiler, append([]string{"-B" + wrappers, l.Use(), "-o", "program"}, args...)...)
	notes, written := map[string]int{}, map[string]int{}
	for _, m := range noteArgs.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", "program"), -1) {
		notes[m[1]+" "+m[2]]++
	}
	for _, m := range nopSymbol.FindAllStringSubmatch(tools.Must(t, "nm", noPlugins, "program"), -1) {
		written[m[1]+" "+m[2]]++
	}
	if len(written) < 6 {
		t.Errorf("%v", written)
	}
	if !converts {
		written = map[string]int{}
	}
	expect.Equal(t, written, notes, "converts: %v; written and notes", converts)
	if info, err := os.Stat("program"); err != nil || info.Size() == 0 {
		t.Error(err)
	}
	for _, arg := range args {
		if arg == "-shared" {
			return
		}
	}
	expect.Equal(t, "ready\n", tools.Must(t, "sh", "-c", "yes | head -n 3 | ./program"), "the program prints")
}
