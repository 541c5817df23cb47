// Package design tests that the packages are to each other, and to those who use
// them, what docs/design.md says.
package design

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

const module = "sdtconvert"

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Export     string   // the file of its export data
	Imports    []string // without those of tests
	GoFiles    []string
}

// list runs go list in the module.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	args = append([]string{"list", "-json=ImportPath,Export,Imports,GoFiles"}, args...)
	out := tools.Command{Directory: tools.Root()}.Output(t, "go", args...)
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// isPublic reports whether other modules can import a package.
func isPublic(path string) bool {
	return strings.HasPrefix(path, module+"/") && !isInternal(path) && !strings.HasPrefix(path, module+"/cmd/")
}

func isInternal(path string) bool { return strings.Contains("/"+path+"/", "/internal/") }
