package cc

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/paths"
)

// object is a file that the compiler is to write.
type object struct {
	path   string
	before fs.FileInfo // before the compiler has run; nil if there was no file
	after  fs.FileInfo // when it has run; nil before, and if there was no file; the same lock
	done   bool        // converted, or left as it is; the session's lock is of this
}

// newObjects returns the objects of paths as they are before the compiler runs.
func newObjects(paths []string) []*object {
	var objects []*object
	for _, path := range paths {
		before, err := os.Stat(path)
		if err != nil {
			before = nil
		} else if before.Mode().IsRegular() {
			outlast(before.ModTime())
		}
		objects = append(objects, &object{path: path, before: before})
	}
	return objects
}

// Units of times of files: the kernel's clock ticks 100 times a second or more, and
// file systems that keep whole seconds may keep even ones only.
const (
	fineUnit   = 20 * time.Millisecond
	coarseUnit = 2 * time.Second
)

// outlast waits until whatever is written has another time than a file that was changed at
// this one, perhaps a moment ago.
func outlast(changed time.Time) {
	unit := fineUnit
	if changed.Nanosecond() == 0 {
		unit = coarseUnit
	}
	if age := time.Since(changed); age >= 0 && age < unit {
		time.Sleep(unit - age)
	}
}

// isWritten reports whether the compiler has written the file. A flag that this package does
// not know may keep it from that, or it fails, and an object that is there stays as it is.
func (o *object) isWritten() bool {
	now, err := os.Stat(o.path)
	if err != nil || !now.Mode().IsRegular() {
		return false
	}
	if _, err := realPath(o.path); err != nil {
		return false
	}
	return o.before == nil || input.IsChanged(o.before, now)
}

// errOpenFile is the error of realPath for a path such as /dev/stdout.
var errOpenFile = errors.New("the path names an open file")

// realPath returns the path that symbolic links lead to. It fails for one that leads to an
// open file of a process: the process may write on behind the object.
func realPath(path string) (string, error) {
	for range paths.MaxLinks {
		directory, err := paths.Real(paths.Directory(path))
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(directory, "/proc/") {
			return "", errOpenFile
		}
		path = paths.Join(directory, filepath.Base(path))
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link
		}
		if !filepath.IsAbs(link) {
			link = paths.Join(directory, link)
		}
		path = link
	}
	return "", syscall.ELOOP
}

// remove removes the file, and not a symbolic link to it. A file that another process has
// written after the compiler stays: the process may be another run that converts it.
func (o *object) remove() error {
	if now, err := os.Stat(o.path); o.after != nil && (err != nil || input.IsChanged(o.after, now)) {
		return nil
	}
	path, err := realPath(o.path)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// Reasons to leave an object as it is.
var (
	errNotWritten = errors.New("not written by this compilation, and left as it is")
	errNotObject  = errors.New("not a relocatable object, and left as it is")
)

// checkConvertible returns the reason to leave the file as it is, or nil. The reason is an
// *lto.Error if the link generates the machine code.
func (o *object) checkConvertible(stubTexts [][]byte) error {
	f, err := input.Open(o.path)
	if err != nil {
		return nil // the conversion says why
	}
	defer f.Close()
	src := f.Source()
	if typ, err := src.Type(); err == nil && typ == input.BitcodeFile {
		_, err = src.Relocatable(stubTexts)
		return asLTO(err, errNotObject)
	}
	if _, typ, ok := src.Ident(); !ok || typ != elf.ET_REL {
		return errNotObject
	}
	_, err = src.Relocatable(stubTexts)
	return asLTO(err, nil)
}

// asLTO returns an error that is an *lto.Error, and another one instead of others.
func asLTO(err, fallback error) error {
	if late := (*lto.Error)(nil); errors.As(err, &late) {
		return err
	}
	return fallback
}

// written returns the objects that are to be converted, each file once, and calls left with the
// others and the reason.
func (s *session) written(objects []*object, stubTexts [][]byte, left func(o *object, reason error)) []*object {
	var convertible []*object
	seen := map[string]bool{}
	for _, o := range objects {
		s.look(o)
		reason := errNotWritten
		if !seen[o.path] && o.isWritten() {
			reason = o.checkConvertible(stubTexts)
		}
		if reason != nil {
			left(o, reason)
			s.leave(o)
			continue
		}
		seen[o.path] = true
		convertible = append(convertible, o)
	}
	return convertible
}

// look notes how the compiler has left an object.
func (s *session) look(o *object) {
	s.Lock()
	defer s.Unlock()
	if after, err := os.Stat(o.path); err == nil {
		o.after = after
	}
}

// leave notes that an object stays as it is.
func (s *session) leave(o *object) {
	s.Lock()
	defer s.Unlock()
	o.done = true
}

// finish notes that an object is converted, or removes it if it cannot be.
func (s *session) finish(o *object, r *convert.Result) {
	s.Lock()
	defer s.Unlock()
	if r.Failed {
		if err := o.remove(); err != nil {
			r.AddError(err)
		}
	}
	o.done = true
}
