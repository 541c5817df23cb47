package design

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// textual matches calls that change a path as text: behind a symbolic link ".." leads elsewhere then.
var textual = regexp.MustCompile(`\b(?:file)?path\.(?:Abs|Clean|Dir|EvalSymlinks|Join|Rel)\b`)

// textualPaths are the files that may call them, since the result is shown, compared or hashed and never
// opened, or the file behind a link is meant.
var textualPaths = strings.Fields(`cmd/sdtconvert/providerdof.go internal/archive/members.go internal/check/report.go
	internal/debuginfo/program.go internal/dtrace/dtrace.go internal/input/file.go internal/ld/linker.go internal/paths/paths.go internal/replace/temp.go`)

// What is opened later, here or by a linker, goes through internal/paths.
func TestPathsAreNotChangedAsText(t *testing.T) {
	var found []string
	for _, p := range list(t, "./...") {
		directory := strings.TrimPrefix(p.ImportPath, module+"/")
		if strings.HasPrefix(directory, "internal/testkit/") || strings.HasPrefix(directory, "internal/e2e") {
			continue
		}
		for _, path := range expect.Value(filepath.Glob(tools.Root(directory, "*.go")))(t) {
			if !strings.HasSuffix(path, "_test.go") && textual.Match(disk.Read(t, path)) {
				found = append(found, directory+"/"+filepath.Base(path))
			}
		}
	}
	expect.Equal(t, textualPaths, found, "files that change paths as text: use internal/paths")
}
