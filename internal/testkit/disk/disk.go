// Package disk reads and writes files for tests, which end if that fails.
package disk

import (
	"bytes"
	"debug/elf"
	"os"
	"testing"
)

// Write writes a file, and replaces one that is there.
func Write[Data string | []byte](t testing.TB, path string, data Data) {
	t.Helper()
	Must(t, os.WriteFile(path, []byte(data), 0o666))
}

// Read returns the content of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	Must(t, err)
	return data
}

// Must ends a test for an error, as that of os.Mkdir or os.Symlink.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// OpenELF opens an ELF file with debug/elf until the test ends.
func OpenELF(t testing.TB, path string) *elf.File {
	t.Helper()
	f, err := elf.Open(path)
	Must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// ELF reads the bytes of an ELF file with debug/elf.
func ELF(t testing.TB, data []byte) *elf.File {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(data))
	Must(t, err)
	return f
}
