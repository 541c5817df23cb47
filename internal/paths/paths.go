// Package paths joins and resolves paths that are opened later.
//
// Behind a symbolic link to a directory, ".." leads to the parent of where the link leads:
// link/../b.o is another file than b.o. Package filepath shortens the former to the
// latter, as text. The functions here keep every component as it is written, or ask the
// system.
package paths

import (
	"os"
	"path/filepath"
)

// MaxLinks is how many symbolic links Linux follows in a path.
const MaxLinks = 40

const separator = string(filepath.Separator)

// Join returns the path of name in a directory. The directory "" is the current one.
func Join(directory, name string) string {
	if directory == "" || os.IsPathSeparator(directory[len(directory)-1]) {
		return directory + name
	}
	return directory + separator + name
}

// Beside returns the path of name in the directory of a file.
func Beside(file, name string) string {
	directory, _ := filepath.Split(file)
	return directory + name
}

// Directory returns the directory that a file is in, "." for a bare name.
func Directory(file string) string {
	directory, _ := filepath.Split(file)
	end := len(directory)
	for end > len(filepath.VolumeName(directory))+1 && os.IsPathSeparator(directory[end-1]) {
		end--
	}
	if end == 0 {
		return "."
	}
	return directory[:end]
}

// Absolute returns a path that leads to the same file from any directory. It fails if the
// current directory is gone.
func Absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	if filepath.VolumeName(path) != "" || path != "" && os.IsPathSeparator(path[0]) {
		return filepath.Abs(path) // a drive has a current directory of its own; links are rare there
	}
	current, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return Join(current, path), nil
}

// Real returns the absolute path of a file without symbolic links and "..". It fails if
// there is no such file.
func Real(path string) (string, error) {
	path, err := Absolute(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
