package resolve_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

// nowhere are the options for an image that has no debug file.
var nowhere = resolve.Options{DebugRoots: []string{}}

func tableOf(t testing.TB, path string, opts resolve.Options) *resolve.Table {
	t.Helper()
	if opts.Warn == nil {
		opts.Warn = func(err error) { t.Errorf("%s: warning: %v", path, err) }
	}
	return expect.Value(resolve.New(tools.OpenELF(t, path), opts))(t)
}

// source returns the path of a source in testdata.
func source(name string) string { return filepath.Join("testdata", name) }

// compile compiles sources of testdata in a new directory.
func compile(t testing.TB, compiler string, flags []string, sources ...string) (objects []string) {
	t.Helper()
	directory := t.TempDir()
	for _, s := range sources {
		out := filepath.Join(directory, strings.TrimSuffix(s, filepath.Ext(s))+".o")
		tools.Output(t, compiler, append(append([]string{}, flags...), "-c", source(s), "-o", out)...)
		objects = append(objects, out)
	}
	return objects
}
