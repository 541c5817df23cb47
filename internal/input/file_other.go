//go:build !linux

package input

import (
	"io/fs"
	"os"
	"syscall"
)

type rawFile struct{ *os.File }

// openRaw opens a regular file.
func openRaw(path string) (rawFile, fs.FileInfo, error) {
	// A pipe without a writer would wait without O_NONBLOCK, which means
	// nothing to a regular file.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return rawFile{}, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil || info.Mode().IsRegular():
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: errDirectory}
	default:
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		f.Close()
		return rawFile{}, nil, err
	}
	return rawFile{f}, info, nil
}

// SameFile reports whether two infos are of one file.
func SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }
