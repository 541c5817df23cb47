package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sdtconvert/internal/replace"
)

// File is a file that is made, or emptied, when the first byte is written to it: a run that fails before leaves what was there.
type File struct {
	Path string
	file *os.File
	err  error
}

// Write implements io.Writer.
func (f *File) Write(data []byte) (int, error) {
	if f.file == nil && f.err == nil {
		f.file, f.err = replace.Create(f.Path, 0o666)
	}
	if f.err != nil {
		return 0, f.err
	}
	return f.file.Write(data)
}

// Close closes the file.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// CheckPath refuses what no trace may be written to: a directory that is there, a program or another ELF file, and what cannot be made. It changes
// nothing.
func CheckPath(path string, isDirectory bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent, err := replace.OpenParent(path)
		if err != nil {
			return err
		}
		return parent.Close()
	case err != nil:
		return err
	case isDirectory:
		return fmt.Errorf("%s: is there already: name a new directory, or remove it", path)
	case info.IsDir():
		return fmt.Errorf("%s: is a directory: name a file in it, or write --format ctf, which makes a new directory", path)
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil // of a file that may be written, not read
	} else if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err == nil && bytes.Equal(magic, []byte("\x7fELF")) {
		return fmt.Errorf("%s: is a program or an object, which a trace does not replace: name another file", path)
	}
	return nil
}
