package ld

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sdtconvert/internal/parallel"
)

// tempFolder is where a link keeps what it makes. It exists only when there is
// something to keep. A nil one is no folder. Its session's lock is held by whoever
// calls its methods.
type tempFolder struct {
	path    string
	files   []string // that may be in it, of which there may be many
	folders map[string]bool
}

// tempPrefix begins the names of such folders.
const tempPrefix = "sdtconvert-ld-"

func newTempFolder(within string) (*tempFolder, error) {
	path, err := os.MkdirTemp(within, tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("the folder for copies: %w; name another in TMPDIR", err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a linker may ask the system what a file is called
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return &tempFolder{path: path, folders: map[string]bool{path: true}}, nil
}

// placeIn is where the copy of a file is in a folder. Its name ends as the file's own
// does, for linker scripts that choose inputs by their names.
func placeIn(folder, absolute string) string {
	volume := filepath.VolumeName(absolute)
	return filepath.Join(folder, strings.TrimSuffix(volume, ":"), absolute[len(volume):])
}

// place is where the copy of a file is to be written.
func (t *tempFolder) place(absolute string) (string, error) {
	place := placeIn(t.path, absolute)
	if err := t.makeFolder(filepath.Dir(place)); err != nil {
		return "", err
	}
	t.files = append(t.files, place)
	return place, nil
}

// makeFolder makes a folder below the temporary one. It asks the system for none
// twice.
func (t *tempFolder) makeFolder(folder string) error {
	if t.folders[folder] {
		return nil
	}
	if err := t.makeFolder(filepath.Dir(folder)); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	t.folders[folder] = true
	return nil
}

// remove removes the folder with all that is in it.
func (t *tempFolder) remove() error {
	if t == nil {
		return nil
	}
	parallel.Each(len(t.files), runtime.GOMAXPROCS(0), func(i int) { os.Remove(t.files[i]) })
	return os.RemoveAll(t.path)
}
