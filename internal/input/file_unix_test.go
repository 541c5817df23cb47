//go:build unix

package input_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe without a writer is refused at once.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	wantNoFile(t, path, "not a regular file")
}
