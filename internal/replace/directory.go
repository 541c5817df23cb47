package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Create opens a file to be written from its start: a new one, or one that is emptied. If others than the user and root may
// change the directory, they may have put a link there, or a file of their own. So the file has to be new then, or the
// user's own and known by no other name. Where nothing can be changed by others, links are followed, and devices and
// pipes are written to.
func Create(path string, mode fs.FileMode) (*os.File, error) {
	d, base, err := openParent(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, err := d.Create(base, mode)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	trusted, err := d.isTrusted()
	if err != nil {
		return nil, err
	}
	if trusted {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, mode)
	}
	if f, err = d.open(base); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || !isOwn(info) || hasLinks(info):
		err = &fs.PathError{Op: "write", Path: path, Err: fmt.Errorf("others may change its directory, and it is not a file of this user's alone")}
	default:
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// MakeDirectory makes a directory, which must not be there yet, and opens it. Close it.
func MakeDirectory(path string, mode fs.FileMode) (*Directory, error) {
	parent, base, err := openParent(strings.TrimRight(path, string(filepath.Separator)))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return parent.makeDirectory(base, mode)
}

// OpenParent opens the directory that the file of a path is in. Close it.
func OpenParent(path string) (*Directory, error) {
	d, _, err := openParent(strings.TrimRight(path, string(filepath.Separator)))
	return d, err
}

// openParent opens the directory of a path.
func openParent(path string) (d *Directory, base string, err error) {
	parent, base := filepath.Split(path)
	d, err = OpenDirectory(parent)
	return d, base, err
}

// join returns the path of a file in the directory. It leaves .. as it is: what it leads to depends on links.
func (d *Directory) join(name string) string {
	if d.Path == "" || os.IsPathSeparator(d.Path[len(d.Path)-1]) {
		return d.Path + name
	}
	return d.Path + string(filepath.Separator) + name
}
