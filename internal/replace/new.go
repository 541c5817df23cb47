package replace

import (
	"errors"
	"io/fs"
	"os"
)

// New writes a file that is made from no other. It gets the mode that any new
// file gets, or that of the file whose place it takes. Links and devices are
// treated as File treats them.
func (w *Writer) New(path string, data []byte) error {
	target, regular, err := resolve(path)
	if err != nil {
		return err
	}
	if !regular {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Close())
	}
	temp, err := w.createTemp(target, 0o666)
	if err != nil {
		return err
	}
	defer temp.discard()
	return temp.named(temp.becomeNew(target, data), target)
}

// becomeNew writes the file and puts it in the place of target.
func (t *temporary) becomeNew(target string, data []byte) error {
	if old, err := os.Stat(target); err == nil {
		if err := t.Chmod(old.Mode() & fs.ModePerm); err != nil {
			return err
		}
	}
	if _, err := t.Write(data); err != nil {
		return err
	}
	return t.rename(target)
}
