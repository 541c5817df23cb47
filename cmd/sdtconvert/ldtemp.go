package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"sdtconvert/internal/parallel"
)

// tempFolder is where a link keeps what it makes. It exists only when there is
// something to keep. A nil one is no folder.
type tempFolder struct {
	path  string
	files []string // of which there may be many

	mu     sync.RWMutex // held for writing once, when the folder goes
	gone   bool
	inside sync.Map // folders that exist
}

func newTempFolder() (*tempFolder, error) {
	path, err := os.MkdirTemp("", "sdtconvert-ld-")
	if err != nil {
		return nil, fmt.Errorf("the folder for copies: %w; name another in TMPDIR", err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a linker may ask the system what a file is called
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return &tempFolder{path: path}, nil
}

// place is where the copy of a file is, which need not exist yet. Its name ends as
// the file's own does, for linker scripts that choose inputs by their names.
func (t *tempFolder) place(absolute string) string {
	volume := filepath.VolumeName(absolute)
	return filepath.Join(t.path, strings.TrimSuffix(volume, ":"), absolute[len(volume):])
}

// makeParent makes the folder that a file is to be in.
func (t *tempFolder) makeParent(file string) error {
	folder := filepath.Dir(file)
	if _, known := t.inside.Load(folder); known {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.gone {
		select {} // the process is about to end
	}
	return t.makeFolder(folder)
}

// makeFolder makes a folder below the temporary one. It asks the system for none
// twice.
func (t *tempFolder) makeFolder(folder string) error {
	if _, known := t.inside.Load(folder); known || folder == t.path {
		return nil
	}
	if err := t.makeFolder(filepath.Dir(folder)); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	t.inside.Store(folder, nil)
	return nil
}

// remove removes the folder with all that is in it.
func (t *tempFolder) remove() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	parallel.Each(len(t.files), runtime.GOMAXPROCS(0), func(i int) { os.Remove(t.files[i]) })
	return os.RemoveAll(t.path)
}
