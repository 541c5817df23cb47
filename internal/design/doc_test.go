// Package design tests that the packages are to each other, and to those who use
// them, what docs/design.md says.
package design

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const module = "sdtconvert"

// root returns the module's directory.
func root() string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(self), "..", "..")
}

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
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Export,Imports,GoFiles"}, args...)...)
	cmd.Dir = root()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", cmd, err, &stderr)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
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
