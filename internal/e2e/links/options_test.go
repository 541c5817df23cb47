package links

import (
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
