package objects

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// Scratch is a file for objects that tests make up, so many of them that each is
// written to one and the same.
type Scratch struct{ file *os.File }

// NewScratch makes a file that goes with the test.
func NewScratch(t testing.TB) *Scratch {
	t.Helper()
	file := expect.Value(os.Create(filepath.Join(t.TempDir(), "scratch.o")))(t)
	t.Cleanup(func() { file.Close() })
	return &Scratch{file}
}

// Path returns where the file is.
func (s *Scratch) Path() string { return s.file.Name() }

// Write makes the file hold data and nothing else.
func (s *Scratch) Write(data []byte) error {
	if _, err := s.file.WriteAt(data, 0); err != nil {
		return err
	}
	return s.file.Truncate(int64(len(data)))
}
