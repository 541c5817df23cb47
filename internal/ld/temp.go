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

// tempDirectory is where a link keeps what it makes. It exists only when there is
// something to keep. A nil one means no directory. Callers of its methods hold its
// session's lock.
type tempDirectory struct {
	path        string
	files       []string        // that may be in it, of which there may be many
	directories map[string]bool // that are made, as they were written
	taken       map[string]kind // by real paths, in lower case: some systems know no other
}

// kind is what a path in the temporary directory is of.
type kind uint8

const (
	nothing kind = iota
	isFile
	isDirectory
)

// tempPrefix begins the names of such directories.
const tempPrefix = "sdtconvert-ld-"

func newTempDirectory(within string) (*tempDirectory, error) {
	path, err := os.MkdirTemp(within, tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("the directory for copies: %w; name another in TMPDIR", err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a linker may ask the system what a file is called
	}
	if path, err = paths.Absolute(path); err != nil {
		return nil, err
	}
	return &tempDirectory{path: path, directories: map[string]bool{path: true}, taken: map[string]kind{}}, nil
}

// placeIn returns the path of the copy in a directory of a file that the linker is told of
// as path. It ends as path does, every ".." included, for linker scripts that choose
// inputs by their names. The directory has no symbolic links in it, and where path begins
// with "..", as many directories more as keep the copy within.
func placeIn(directory, path string) string {
	if volume := filepath.VolumeName(path); volume != "" {
		directory, path = paths.Join(directory, strings.TrimSuffix(volume, ":")), path[len(volume):]
	}
	for range leadsOut(path) {
		directory = paths.Join(directory, "_")
	}
	if path != "" && os.IsPathSeparator(path[0]) {
		return directory + path
	}
	return paths.Join(directory, path)
}

// leadsOut returns how many directories up a path leads from where it begins.
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
// path, and makes the directories for it. No two calls return paths of the same file.
func (t *tempDirectory) place(path string) (string, error) {
	for level := 0; ; level++ {
		place := placeIn(paths.Join(t.path, strconv.Itoa(level)), path)
		if !t.take(place) {
			continue
		}
		if err := t.makeDirectory(paths.Directory(place)); err != nil {
			return "", err
		}
		t.files = append(t.files, place)
		return place, nil
	}
}

// take makes a path stand for a file, unless another file or a directory has its place, or
// a file that of a directory on the way.
func (t *tempDirectory) take(place string) bool {
	own := keyOf(place)
	if t.taken[own] != nothing {
		return false
	}
	if !t.directories[paths.Directory(place)] {
		var directories []string
		for i := len(t.path) + 1; i < len(place); i++ {
			if os.IsPathSeparator(place[i]) {
				directories = append(directories, keyOf(place[:i]))
			}
		}
		for _, directory := range directories {
			if t.taken[directory] == isFile || directory == own {
				return false
			}
		}
		for _, directory := range directories {
			t.taken[directory] = isDirectory
		}
	}
	t.taken[own] = isFile
	return true
}

// keyOf returns what all paths of a file in the temporary directory have in common. No
// symbolic link is in there, so ".." can be removed as text.
func keyOf(path string) string { return strings.ToLower(filepath.Clean(path)) }

// makeDirectory makes a directory below the temporary one. It asks the system for none
// twice.
func (t *tempDirectory) makeDirectory(directory string) error {
	if t.directories[directory] {
		return nil
	}
	if err := t.makeDirectory(paths.Directory(directory)); err != nil {
		return err
	}
	name := filepath.Base(directory)
	if err := os.Mkdir(directory, 0o700); err != nil && !os.IsExist(err) && name != "." && name != ".." {
		return err
	}
	t.directories[directory] = true
	return nil
}

// remove removes the directory with all that is in it.
func (t *tempDirectory) remove() error {
	if t == nil {
		return nil
	}
	parallel.Each(len(t.files), runtime.GOMAXPROCS(0), func(i int) { os.Remove(t.files[i]) })
	return os.RemoveAll(t.path)
}
