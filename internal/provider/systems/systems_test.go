package systems

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// Each file declares probes with names and types for each parameter, and each name of a length is one of a parameter.
func TestFiles(t *testing.T) {
	files := expect.Value(Read())(t)
	expect.Equal(t, 13, len(files))
	for name, file := range files {
		expect.Equal(t, 0, len(file.Warnings), "%s: %v", name, file.Warnings)
		for _, p := range file.Providers {
			for _, probe := range p.Probes {
				names := map[string]bool{}
				for _, a := range probe.Args {
					if a.Name == "" || names[a.Name] {
						t.Errorf("%s: %s: a parameter has no name of its own", name, probe.Name)
					}
					names[a.Name] = true
				}
				for _, a := range probe.Args {
					if _, length, ok := strings.Cut(a.Type, "["); ok && !names[strings.TrimSuffix(length, "]")] {
						t.Errorf("%s: %s: %s", name, probe.Name, a.Type)
					}
				}
			}
		}
	}
}
