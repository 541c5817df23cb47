package links

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestDropRelocations links objects without the relocations that keep records
// alive, without gc: nothing is missing.
func TestDropRelocations(t *testing.T) {
	for _, ld := range amd64.linkers {
		for _, l := range layouts {
			t.Run(ld.Name+"/"+l.name, func(t *testing.T) {
				t.Parallel()
				c := amd64Compiler(toolchains.GCC, "-O2")
				c.need(t)
				tools.Need(t, ld.Path)
				p := compileProgram(t, c, l, false)
				twin, err := modePIE.link(p, ld, nil, p.twin())
				unconverted(t, err)
				got := expect.Value(modePIE.link(p, ld, nil, p.converted(t, append(l.flags(), "--drop-relocations")...)))(t)
				got.check(t, amd64, l, twin.examine(t, amd64))
			})
		}
	}
}

// TestNoRecords links objects whose probes are only disabled.
func TestNoRecords(t *testing.T) {
	for _, ld := range amd64.linkers {
		t.Run(ld.Name, func(t *testing.T) {
			t.Parallel()
			c := amd64Compiler(toolchains.Clang, "-Os")
			c.need(t)
			tools.Need(t, ld.Path)
			p := compileProgram(t, c, pairs, false)
			got := expect.Value(modePIE.link(p, ld, nil, p.converted(t, "--no-records")))(t)
			im := openImage(t, got.image)
			for _, s := range im.file.Sections {
				if strings.HasPrefix(s.Name, "sdt_") {
					t.Errorf("%s has a section %s", im.path, s.Name)
				}
			}
			checkNames(t, im)
			checkRun(t, amd64, got.exe, expected(t), im, nil)
		})
	}
}

// TestFentry makes probes of what -pg -mfentry puts at the start of functions.
func TestFentry(t *testing.T) {
	for _, object := range []string{"none.amd64-gcc12-fentry.o", "none.amd64-clang19-fentry.o"} {
		for _, ld := range amd64.linkers {
			t.Run(object+"/"+ld.Name, func(t *testing.T) {
				t.Parallel()
				amd64.need(t)
				tools.Need(t, ld.Path)
				c := compiler{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
				o := convert(t, filepath.Join(sources, object), "--symbol", "__fentry__")
				exe := expect.Value(link(amd64, ld, "fentry", []string{"-pie"}, o, c.object(t, "fentry.c")))(t)
				tools.Must(t, exe)
				var functions []string
				im := openImage(t, exe)
				sites := im.records(t, pairs)
				checkCode(t, amd64, im, sites)
				for _, s := range sites {
					functions = append(functions, s.id+" "+s.function)
				}
				slices.Sort(functions)
				want := []string{"__fentry__ none_call", "__fentry__ none_cold", "__fentry__ none_tail", "__fentry__ none_weak"}
				if !slices.Equal(functions, want) {
					t.Errorf("records of %q, not %q", functions, want)
				}
			})
		}
	}
}
