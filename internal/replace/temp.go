package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"sdtconvert/internal/input"
	"sdtconvert/internal/paths"
)

// temporary is a file that becomes its target by a rename, or is removed.
type temporary struct {
	*os.File
	writer    *Writer
	directory *Directory // nil for a file without a name
	asked     string     // the path that target was found by
	done      bool
}

func (w *Writer) createTemp(asked, target string, mode fs.FileMode) (*temporary, error) {
	if w.BeforeFirstFile != nil {
		w.once.Do(w.BeforeFirstFile)
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	directory, base, err := openParent(target)
	if err != nil {
		return nil, directoryError(target, err)
	}
	f, err := directory.createUnused(base, mode)
	if err != nil {
		directory.Close()
		return nil, directoryError(target, err)
	}
	t := &temporary{File: f, writer: w, directory: directory, asked: asked}
	w.tempFiles.Store(t, nil)
	return t, nil
}

// createUnused creates a file for target, a name in the directory, of a name that is not in use.
func (d *Directory) createUnused(target string, mode fs.FileMode) (f *os.File, err error) {
	const attempts = 10000 // each may meet a name that is taken
	for range attempts {
		f, err = d.Create("."+target+"."+strconv.FormatUint(uint64(rand.Uint32()), 36)+".tmp", mode)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

func directoryError(target string, err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return &DirectoryError{target, p.Err}
	}
	return err
}

// DirectoryError says that no file can be created beside a target, which is to be replaced.
type DirectoryError struct {
	Target string
	Err    error // of the system
}

// Error names the target and its directory, and not the temporary file, whose name means
// nothing to a user.
func (e *DirectoryError) Error() string {
	return fmt.Sprintf("%s: cannot create a file in %s: %v", e.Target, paths.Directory(e.Target), e.Err)
}

// Unwrap returns the error of the system.
func (e *DirectoryError) Unwrap() error { return e.Err }

// IsReadOnly reports whether an error is that a directory, or all of its file system, must
// not be written to.
func IsReadOnly(err error) bool {
	d := (*DirectoryError)(nil)
	return errors.As(err, &d) && (errors.Is(d.Err, fs.ErrPermission) || errors.Is(d.Err, syscall.EROFS))
}

// withTargetName says of an error in writing the temporary file what it was to become.
func (t *temporary) withTargetName(err error, target string) error {
	switch e := err.(type) {
	case *fs.PathError:
		if e.Path == t.Name() {
			return &fs.PathError{Op: e.Op, Path: target, Err: e.Err}
		}
	case *os.LinkError:
		return &fs.PathError{Op: "replace", Path: target, Err: e.Err}
	}
	return err
}

// replaceTarget puts the file, which was made from in, in the place of target.
func (t *temporary) replaceTarget(target string, in *input.File) error {
	if err := t.copyMetadata(target, in); err != nil {
		return err
	}
	if err := in.CheckUnchanged(); err != nil {
		return err
	}
	in.Close() // Windows replaces no file that is open
	return t.rename(target)
}

// copyMetadata gives the file the mode, the attributes and, where permitted, the owner of the input, and its time
// of modification if the input is the target. The attributes come first: with an access list, the bits of the group in
// the mode say what any group may do at most, and not what the file's own may.
func (t *temporary) copyMetadata(target string, in *input.File) error {
	mode := in.Info.Mode()
	if !chown(t.File, in.Info) {
		mode &^= os.ModeSetuid | os.ModeSetgid // they would pass to a new owner
	}
	replaced, err := t.directory.lstat(filepath.Base(target))
	inPlace := err == nil && os.SameFile(replaced, in.Info)
	if asked := t.asked == in.Path; asked && !inPlace { // a link may lead elsewhere by now
		return &fs.PathError{Op: "convert", Path: in.Path, Err: input.ErrChanged}
	}
	if err := copyAttributes(t.File, in.Descriptor(), inPlace); err != nil {
		return err
	}
	if err := t.Chmod(mode & (os.ModePerm | os.ModeSetuid | os.ModeSetgid | os.ModeSticky)); err != nil {
		return err
	}
	if !inPlace {
		return nil
	}
	return changeTime(t.File, in.Info.ModTime())
}

// name returns the name of the file in its directory.
func (t *temporary) name() string { return filepath.Base(t.Name()) }

// rename closes the file, which may report that the disk is full, and puts it
// in the place of target.
func (t *temporary) rename(target string) error {
	if err := t.Close(); err != nil {
		return err
	}
	t.writer.mu.RLock()
	defer t.writer.mu.RUnlock()
	if err := t.directory.Rename(t.name(), filepath.Base(target)); err != nil {
		return err
	}
	t.forget()
	return nil
}

// forget closes the directory of a file that has its name, or is removed.
func (t *temporary) forget() {
	t.done = true
	t.writer.tempFiles.Delete(t)
	t.directory.Close()
}

// discard removes the file unless it was renamed.
func (t *temporary) discard() {
	if t.done {
		return
	}
	t.Close()
	if t.directory == nil {
		return
	}
	t.directory.Remove(t.name())
	t.forget()
}

// resolve follows path to the file that is to be replaced, and reports whether
// it is one that can be: a regular file, or none yet.
func resolve(path string) (target string, regular bool, err error) {
	// Most paths are no link, and are written to as they are: links of directories lead to
	// the same place for whoever opens the path.
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return path, info.Mode().IsRegular(), nil
	}
	info, err = os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = followDangling(path)
		return target, true, err
	}
	if err != nil || !info.Mode().IsRegular() {
		return path, false, err
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		// Links of /proc/self/fd lead to what has no name, too: a file that is removed.
		return path, false, nil
	}
	return target, true, nil
}

// followDangling returns the path that symbolic links lead to although there is no file,
// where open(2) would make one.
func followDangling(path string) (string, error) {
	for range paths.MaxLinks {
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link: the file is made here
		}
		if !filepath.IsAbs(link) {
			// As text, so that .. leads where the kernel says.
			directory, _ := filepath.Split(path)
			link = directory + link
		}
		path = link
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: errors.New("too many symbolic links")}
}
