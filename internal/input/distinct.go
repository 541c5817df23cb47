package input

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sdtconvert/internal/parallel"
	"sdtconvert/internal/paths"
)

// Distinct removes files that are named twice, by whatever path. Two hard links
// to one file are two files: converting one leaves the other as it is.
func Distinct(files []string) ([]string, error) {
	if len(files) < 2 {
		return files, nil
	}
	type file struct{ directory, base string }
	cache := make(directories)
	seen := make(map[file]bool, len(files))
	out := make([]string, 0, len(files))
	links := make([]bool, len(files))
	parallel.Each(len(files), runtime.GOMAXPROCS(0), func(i int) { links[i] = isLink(files[i]) })
	for i, name := range files {
		real := name
		if links[i] {
			if target, err := filepath.EvalSymlinks(name); err == nil {
				real = target
			}
		}
		directory, base := filepath.Split(real)
		directory, err := cache.real(directory)
		if err != nil {
			return nil, err
		}
		if key := (file{directory, base}); !seen[key] {
			seen[key] = true
			out = append(out, name)
		}
	}
	return out, nil
}

func isLink(path string) bool {
	_, err := os.Readlink(path) // which takes less time than lstat(2)
	return err == nil
}

// directories maps paths of directories to where they lead, absolute and without symbolic
// links. Each is resolved once, however many files in it are asked for.
type directories map[string]string

func (f directories) real(path string) (string, error) {
	if real, known := f[path]; known {
		return real, nil
	}
	real, err := f.resolve(path)
	if err != nil { // the path leads nowhere, so it is compared as it is written
		real, err = paths.Absolute(path)
	}
	f[path] = real
	return real, err
}

// resolve follows the path of a directory. One that is no link is where its parent is.
func (f directories) resolve(path string) (string, error) {
	parent, base := filepath.Split(strings.TrimRight(path, "/"))
	if base == "" || base == "." || base == ".." || os.IsPathSeparator('\\') { // there, names differ in case
		return paths.Real(path)
	}
	if info, err := os.Lstat(path[:len(parent)+len(base)]); err != nil || !info.IsDir() {
		return paths.Real(path)
	}
	real, err := f.real(parent)
	return paths.Join(real, base), err
}

// SamePath reports whether two paths lead to the same name in the same directory.
func SamePath(a, b string) (bool, error) {
	both, err := Distinct([]string{a, b})
	return len(both) == 1, err
}
