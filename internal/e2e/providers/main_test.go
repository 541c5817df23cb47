package providers

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/tools"
)

var (
	files     shared.Files
	converter string
)

func TestMain(m *testing.M) {
	tools.MostlyWait()
	os.Exit(tools.Main(m, `TestScripts$|TestNotesAreSystemTaps|TestDOFLinks|TestLinks`, func(folder, program string) error {
		files.Folder, converter = folder, program
		return nil
	}))
}

// write writes a file of a folder.
func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// source is a file of testdata.
func source(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// folderWith makes a folder with the header of the program's provider.
func folderWith(t *testing.T, flags ...string) string {
	t.Helper()
	folder := t.TempDir()
	tools.Command{Folder: folder}.Must(t, converter, append([]string{"provider", "-h", "-s", source(t, "shop.d")}, flags...)...)
	return folder
}
