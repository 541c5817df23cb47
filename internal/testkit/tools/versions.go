package tools

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sdtconvert/internal/testkit/alone"
	"sdtconvert/internal/testkit/expect"
)

// used are the tools of each test that runs.
var used = struct {
	sync.Mutex
	by map[testing.TB][]string
}{by: map[testing.TB][]string{}}

// remember has a test that fails name the versions of the tools it ran with: what
// it asserts of them may be true of others. What is not found along PATH is no
// tool of others. It also logs how to run the test alone.
func remember(t testing.TB, tools ...string) {
	t.Helper()
	DependOnTree(t)
	used.Lock()
	defer used.Unlock()
	all, known := used.by[t]
	for _, tool := range tools {
		if tool == filepath.Base(tool) && !slices.Contains(all, tool) {
			all = append(all, tool)
		}
	}
	used.by[t] = all
	if known {
		return
	}
	alone.Report(t, "")
	t.Cleanup(func() {
		used.Lock()
		tools := used.by[t]
		delete(used.by, t)
		used.Unlock()
		if t.Failed() && len(tools) > 0 {
			t.Logf("with these tools:\n%s", versions(tools))
		}
	})
}

// versions returns the first lines that tools print when they are asked for theirs.
func versions(tools []string) string {
	var b strings.Builder
	for _, tool := range tools {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		out, err := exec.CommandContext(ctx, tool, "--version").CombinedOutput()
		cancel()
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if err != nil {
			line = "does not tell its version: " + err.Error()
		}
		b.WriteString("  " + tool + ": " + line + "\n")
	}
	return b.String()
}

// DependOnTree opens each directory of the project but those of documents, once. `go test`
// takes the result of an earlier run if no file that the test has opened has changed since,
// nor the entries of a directory; it does not see what other programs open for the test,
// nor what sdtconvert is built of. All functions of this package that run tools call it.
func DependOnTree(t testing.TB) {
	t.Helper()
	expect.OK(t, openTree())
}

var openTree = sync.OnceValue(func() error {
	return filepath.WalkDir(Root(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was temporary
			return nil
		case err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "docs"):
			return fs.SkipDir
		}
		return err
	})
})
