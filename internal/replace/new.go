package replace

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// New writes a file that is made from no other. It gets the mode that any new
// file gets, or that of the file whose place it takes. Links and devices are
// treated as File treats them.
func (w *Writer) New(path string, data []byte) error {
	return w.Create(path, func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	})
}

// Create is New for contents that a function writes, so that they need not be in memory.
// The file that is replaced is whole until the function returns, which may read it. An
// error of the function leaves that file as it is.
func (w *Writer) Create(path string, contents func(to io.Writer) error) error {
	target, regular, err := resolve(path)
	if err != nil {
		return err
	}
	if !regular {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(contents(f), f.Close())
	}
	temp, err := w.createTemp(target, 0o666)
	if err != nil {
		return err
	}
	defer temp.discard()
	return temp.named(temp.becomeNew(target, contents), target)
}

// becomeNew writes the file and puts it in the place of target.
func (t *temporary) becomeNew(target string, contents func(to io.Writer) error) error {
	if old, err := os.Stat(target); err == nil {
		if err := t.Chmod(old.Mode() & fs.ModePerm); err != nil {
			return err
		}
	}
	if err := contents(t.file); err != nil {
		return err
	}
	return t.rename(target)
}
