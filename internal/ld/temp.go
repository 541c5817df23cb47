package ld

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"sdtconvert/internal/parallel"
	"sdtconvert/internal/paths"
)

// tempFolder is where a link keeps what it makes. It exists only when there is
// something to keep. A nil one is no folder. Its session's lock is held by whoever
// calls its methods.
type tempFolder struct {
	path    string
	files   []string        // that may be in it, of which there may be many
	folders map[string]bool // that are made, as they were written
	taken   map[string]kind // by real paths, in lower case: some systems know no other
}

// kind is what a path in the temporary folder is of.
type kind uint8

const (
	nothing kind = iota
	isFile
	isFolder
)

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
	if path, err = paths.Absolute(path); err != nil {
		return nil, err
	}
	return &tempFolder{path: path, folders: map[string]bool{path: true}, taken: map[string]kind{}}, nil
}

// placeIn returns the path of the copy in a folder of a file that the linker is told of
// as path. It ends as path does, every ".." included, for linker scripts that choose
// inputs by their names. The folder has no symbolic links in it, and where path begins
// with "..", as many folders more as keep the copy within.
func placeIn(folder, path string) string {
	if volume := filepath.VolumeName(path); volume != "" {
		folder, path = paths.Join(folder, strings.TrimSuffix(volume, ":")), path[len(volume):]
	}
	for range leadsOut(path) {
		folder = paths.Join(folder, "_")
	}
	if path != "" && os.IsPathSeparator(path[0]) {
		return folder + path
	}
	return paths.Join(folder, path)
}

// leadsOut returns how many folders up a path leads from where it begins.
func leadsOut(path string) int {
	depth, out := 0, 0
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(uint8(r)) }) {
		switch name {
		case ".":
		case "..":
			depth--
			out = max(out, -depth)
		default:
			depth++
		}
	}
	return out
}

// place returns where the copy is to be written of a file that the linker is told of as
// path, and makes the folders for it. No two calls return paths of the same file.
func (t *tempFolder) place(path string) (string, error) {
	for level := 0; ; level++ {
		place := placeIn(paths.Join(t.path, strconv.Itoa(level)), path)
		if !t.take(place) {
			continue
		}
		if err := t.makeFolder(paths.Directory(place)); err != nil {
			return "", err
		}
		t.files = append(t.files, place)
		return place, nil
	}
}

// take has a path stand for a file, unless another file or a folder has its place, or a
// file that of a folder on the way.
func (t *tempFolder) take(place string) bool {
	own := keyOf(place)
	if t.taken[own] != nothing {
		return false
	}
	if !t.folders[paths.Directory(place)] {
		var folders []string
		for i := len(t.path) + 1; i < len(place); i++ {
			if os.IsPathSeparator(place[i]) {
				folders = append(folders, keyOf(place[:i]))
			}
		}
		for _, folder := range folders {
			if t.taken[folder] == isFile || folder == own {
				return false
			}
		}
		for _, folder := range folders {
			t.taken[folder] = isFolder
		}
	}
	t.taken[own] = isFile
	return true
}

// keyOf returns what all paths of a file in the temporary folder have in common. No
// symbolic link is in there, so ".." can be removed as text.
func keyOf(path string) string { return strings.ToLower(filepath.Clean(path)) }

// makeFolder makes a folder below the temporary one. It asks the system for none
// twice.
func (t *tempFolder) makeFolder(folder string) error {
	if t.folders[folder] {
		return nil
	}
	if err := t.makeFolder(paths.Directory(folder)); err != nil {
		return err
	}
	name := filepath.Base(folder)
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) && name != "." && name != ".." {
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
