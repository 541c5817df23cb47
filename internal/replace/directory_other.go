//go:build !linux

package replace

import (
	"io/fs"
	"os"
)

// Directory is a directory.
type Directory struct{ Path string }

// OpenDirectory opens a directory, "" for the current one.
func OpenDirectory(path string) (*Directory, error) { return &Directory{path}, nil }

// Close closes the directory.
func (d *Directory) Close() error { return nil }

// Create makes a file that is not there yet, to be read and written.
func (d *Directory) Create(name string, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(d.join(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

func (d *Directory) open(name string) (*os.File, error) {
	return os.OpenFile(d.join(name), os.O_RDWR, 0)
}

func (d *Directory) lstat(name string) (fs.FileInfo, error) { return os.Lstat(d.join(name)) }

func (d *Directory) makeDirectory(name string, mode fs.FileMode) (*Directory, error) {
	path := d.join(name)
	return &Directory{path}, os.Mkdir(path, mode)
}

func (d *Directory) isTrusted() (bool, error) { return true, nil }

// Rename gives a file of the directory another name in it.
func (d *Directory) Rename(from, to string) error { return os.Rename(d.join(from), d.join(to)) }

// Remove removes a file of the directory.
func (d *Directory) Remove(name string) error { return os.Remove(d.join(name)) }

func isOwn(fs.FileInfo) bool { return true }

func hasLinks(fs.FileInfo) bool { return false }
