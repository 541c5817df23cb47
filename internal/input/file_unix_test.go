//go:build unix

package input_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// A pipe without a writer is refused at once.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	expect.OK(t, syscall.Mkfifo(path, 0o666))
	wantNoFile(t, path, "not a regular file")
}
