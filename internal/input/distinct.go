package input

import (
	"os"
	"path/filepath"

	"sdtconvert/internal/paths"
)

// Distinct removes files that are named twice, by whatever path. Two hard links
// to one file are two files: converting one leaves the other as it is.
func Distinct(files []string) ([]string, error) {
	if len(files) < 2 {
		return files, nil
	}
	type file struct{ directory, base string }
	directories := map[string]string{} // where they lead: each is resolved once, however many files are in it
	seen := make(map[file]bool, len(files))
	out := make([]string, 0, len(files))
	for _, name := range files {
		real := name
		if isLink(name) {
			if target, err := filepath.EvalSymlinks(name); err == nil {
				real = target
			}
		}
		path, base := filepath.Split(real)
		directory, known := directories[path]
		if !known {
			var err error
			if directory, err = realDirectory(path); err != nil {
				return nil, err
			}
			directories[path] = directory
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

// realDirectory returns where the path of a directory leads, absolute and without symbolic
// links. If it leads nowhere, it is compared as it is written.
func realDirectory(path string) (string, error) {
	real, err := paths.Real(path)
	if err != nil {
		return paths.Absolute(path)
	}
	return real, nil
}

// SamePath reports whether two paths lead to the same name in the same directory.
func SamePath(a, b string) (bool, error) {
	both, err := Distinct([]string{a, b})
	return len(both) == 1, err
}
