package providers

import (
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

var converter string

func TestMain(m *testing.M) {
	tools.MostlyWait()
	tools.Main(m, `TestScripts$|TestNotesAreSystemTaps|TestDOFLinks|TestLinks`, &converter, nil)
}

// write writes a file of a directory.
func write(t *testing.T, directory, name, text string) string {
	t.Helper()
	path := filepath.Join(directory, name)
	disk.Write(t, path, text)
	return path
}

// source returns a file of testdata.
func source(t *testing.T, name string) string {
	t.Helper()
	return expect.Value(filepath.Abs(filepath.Join("testdata", name)))(t)
}

// directoryWith makes a directory with the header of the program's provider.
func directoryWith(t *testing.T, flags ...string) string {
	t.Helper()
	directory := t.TempDir()
	tools.Command{Directory: directory}.Must(t, converter, append([]string{"provider", "-h", "-s", source(t, "shop.d")}, flags...)...)
	return directory
}
