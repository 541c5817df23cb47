//go:build !linux

package regular

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Open opens the regular file that a path leads to, to read. A pipe without a writer would wait without O_NONBLOCK.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkType(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{File: f, Info: info, Path: path}, nil
}

// OpenBelow is for processes, which can be read on Linux alone.
func OpenBelow(root, path, name string) (*File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// RealPath returns "": it is not known here.
func (f *File) RealPath() string { return "" }

func isSparse(fs.FileInfo) bool { return false }

func holes(*os.File, int64, int64) int64 { return 0 }
