package cc

import (
	"debug/elf"
	"io/fs"
	"os"
	"time"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/patch"
)

// object is a file that the compiler is to write.
type object struct {
	path   string
	before fs.FileInfo // before the compiler has run; nil if there was no file
	began  time.Time   // when it ran
	done   bool        // converted, or left as it is; the session's lock is of it
}

func newObjects(paths []string) []*object {
	var all []*object
	began := time.Now()
	for _, path := range paths {
		before, err := os.Stat(path)
		if err != nil {
			before = nil
		}
		all = append(all, &object{path: path, before: before, began: began})
	}
	return all
}

// coarsest is the unit of times of files, on file systems that have a coarse one.
const coarsest = 2 * time.Second

// isWritten reports whether the compiler has written the file. A flag that this package does
// not know may keep it from that, and an object that is there stays as it is. If the file was
// so new before that its time need not have changed, it counts as written.
func (o *object) isWritten() bool {
	now, err := os.Stat(o.path)
	if err != nil || !now.Mode().IsRegular() {
		return false
	}
	return o.before == nil || !os.SameFile(o.before, now) || o.before.Size() != now.Size() || !o.before.ModTime().Equal(now.ModTime()) ||
		o.before.ModTime().After(o.began.Add(-coarsest))
}

// isConvertible reports whether the file is to be converted: it is a relocatable object,
// and its code need not be generated first, in the link.
func (o *object) isConvertible(names patch.Names) bool {
	f, err := input.Open(o.path)
	if err != nil {
		return false
	}
	defer f.Close()
	src := f.Source()
	if _, typ, ok := src.Ident(); !ok || typ != elf.ET_REL {
		return false
	}
	obj, err := src.Image()
	if err != nil {
		return true // the conversion says why
	}
	defer obj.Release()
	late, err := input.FindLateCode(obj.Object, names)
	return err != nil || late.Compiler == ""
}

// written returns those objects that the compiler has written and that are to be converted,
// each file once.
func (s *session) written(objects []*object, names patch.Names) []*object {
	var all []*object
	seen := map[string]bool{}
	for _, o := range objects {
		if seen[o.path] || !o.isWritten() || !o.isConvertible(names) {
			s.leave(o)
			continue
		}
		seen[o.path] = true
		all = append(all, o)
	}
	return all
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
		if err := os.Remove(o.path); err != nil {
			r.Fail(err)
		}
	}
	o.done = true
}
