package header

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
)

// TestRead has this project's reader find what the program itself finds: in the
// converted objects, through their relocations, and in linked images.
func TestRead(t *testing.T) {
	for _, c := range native {
		c.need(t, bfd)
		var want []string // of each probe that has records, in the image
		for _, p := range append(programProbes(), probe{name: "dead:::code", types: []string{"int"}}) {
			if len(p.calls) > 0 || p.name == "hdr:::n" || p.name == "dead:::code" {
				want = append(want, fmt.Sprintf("%s(%s)", p.name, strings.Join(p.types, ", ")))
			}
		}
		slices.Sort(want)
		for _, mode := range []string{"-no-pie", "-pie", "-shared", "-static"} {
			_, path := c.link(t, way{linker: bfd, mode: mode}, programSources)
			checkLines(t, path, readProbes(t, path), want)
		}
		// What an object does not define it knows by the id alone.
		got := readProbes(t, convert(t, c.object(t, "c.c")))
		for _, line := range []string{"two-words::func:a-b(char *)", "hdr:::o1-old(t0)", "hdr:::from-cxx()", "d:::3(int, const char *, int)"} {
			if !slices.Contains(got, line) {
				t.Errorf("c.o: missing: %s", line)
			}
		}
	}
}

// readProbes returns the probes that the records of an image refer to.
func readProbes(t *testing.T, path string) []string {
	t.Helper()
	o := tools.OpenELF(t, path)
	im := expect.Value(image.Open(o, machines.Lookup(o.ABI())))(t)
	layout := expect.Value(linkerset.ParseLayout("pairs", ""))(t)
	entries, faults, err := layout.Read(im)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	probes := linkerset.NewProbes(im, "sdt_")
	var lines []string
	for _, e := range entries {
		if e.Kind != arch.Probe {
			continue
		}
		p := expect.Value(probes.Lookup(e.Probe))(t)
		var types []string
		for _, a := range p.Args {
			if a.Translated != "" {
				a.Native += " -> " + a.Translated
			}
			types = append(types, a.Native)
		}
		lines = append(lines, fmt.Sprintf("%s:%s:%s:%s(%s)", p.Provider, p.Module, p.Function, p.Name, strings.Join(types, ", ")))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
