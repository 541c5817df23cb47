package links

import (
	"path/filepath"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestInterposed preloads a library with a function of the same name as one of
// the probed library: the other one runs, but every record stays in the probed
// library. records already sees to it that no site is left to symbol lookup;
// here the dynamic loader has the last word.
func TestInterposed(t *testing.T) {
	all := product.New("layout", "linker")
	for _, l := range layouts {
		for _, ld := range amd64.linkers {
			all.Add(l.name+"/"+ld.Name, []string{l.name, ld.Name}, func(t *testing.T) {
				t.Parallel()
				c := amd64Compiler(toolchains.GCC, "-O2")
				c.need(t)
				tools.Need(t, ld.Path)
				checkInterposed(t, c, l, ld)
			})
		}
	}
	all.Run(t)
}

func checkInterposed(t *testing.T, c compiler, l layout, ld toolchains.Linker) {
	p := compileProgram(t, c, l, true)
	got := expect.Value(modeShared.link(p, ld, nil, p.converted(t, l.flags()...)))(t)
	other := c.object(t, "interpose.c")
	lib := expect.Value(link(amd64, ld, "libinterpose.so", []string{"-shared"}, other))(t)
	plain := expect.Value(run(amd64, got.exe))(t)
	interposed := expect.Value(run(amd64, got.exe, lib))(t)
	if plain.stdout == interposed.stdout {
		t.Errorf("%s: nothing was interposed", filepath.Base(lib))
	}
	if len(plain.records) == 0 || !slices.Equal(plain.records, interposed.records) {
		t.Errorf("the records move:\n%q\n%q", plain.records, interposed.records)
	}
}
