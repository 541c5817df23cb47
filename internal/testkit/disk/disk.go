// Package disk reads and writes files for tests, which end if that fails.
package disk

import (
	"bytes"
	"debug/elf"
	"os"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// Write writes a file, and replaces one that is there.
func Write[Data string | []byte](t testing.TB, path string, data Data) {
	t.Helper()
	expect.OK(t, os.WriteFile(path, []byte(data), 0o666))
}

// Read returns the content of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	return expect.Value(os.ReadFile(path))(t)
}

// Absent fails a test, which goes on, if there is a file.
func Absent(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there, %v", path, err)
	}
}

// OpenELF opens an ELF file with debug/elf until the test ends.
func OpenELF(t testing.TB, path string) *elf.File {
	t.Helper()
	f := expect.Value(elf.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// ELF reads the bytes of an ELF file with debug/elf.
func ELF(t testing.TB, data []byte) *elf.File {
	t.Helper()
	return expect.Value(elf.NewFile(bytes.NewReader(data)))(t)
}
