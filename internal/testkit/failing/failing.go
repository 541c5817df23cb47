// Package failing gives tests files of which a read fails.
package failing

import (
	"bytes"
	"errors"
)

// Err is the error of the read that fails.
var Err = errors.New("the medium fails")

// File is a file in memory.
type File struct {
	*bytes.Reader
	Fails int // the number of the read that fails, from 1; 0 for none
	Reads int // how many there were
}

// New returns a file.
func New(data []byte, fails int) *File { return &File{Reader: bytes.NewReader(data), Fails: fails} }

// ReadAt reads, or fails.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	f.Reads++
	if f.Reads == f.Fails {
		return 0, Err
	}
	return f.Reader.ReadAt(b, off)
}
