package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"sdtconvert/internal/regular"
)

// CodeFiles collects the files whose code processes have mapped, each once. The zero value is empty.
type CodeFiles struct {
	Files []*CodeFile

	byID map[fileID]bool
}

// CodeFile is a file whose code a process has mapped.
type CodeFile struct {
	// Path leads to the file, or shows where its process has it: below the root of this process, or in /proc.
	Path string

	mapping Mapping
	open    func() (*regular.File, error)
}

// ErrNoMemory is of a process that has ended, or is a thread of the kernel.
var ErrNoMemory = errors.New("has no memory of its own")

// Add adds the files of a process. Files without a name are left out. An error is of the process, or joins those of files.
func (c *CodeFiles) Add(pid int) error {
	p := runningProcess(pid)
	maps, err := readMaps(p.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH), err == nil && len(maps) == 0:
		return ErrNoMemory
	case err != nil:
		return p.openError(err)
	}
	if c.byID == nil {
		c.byID = map[fileID]bool{}
	}
	var errs []error
	for _, m := range maps {
		if !m.Executable || m.file == (fileID{}) || c.byID[m.file] {
			continue
		}
		c.byID[m.file] = true
		if file, err := p.findCode(m); err != nil {
			errs = append(errs, err)
		} else if file != nil {
			c.Files = append(c.Files, file)
		}
	}
	return errors.Join(errs...)
}

// errHidden is of a file of a mount namespace, to which no path leads from here.
var errHidden = errors.New("code that a process has mapped is not where its path leads to, and there is no permission to open the mapping itself")

// findCode finds the file of a mapping: by the path from the root of this process, by that from the root of the other one, or by the
// mapping itself, if that has a name. It returns nil for a file without a name, and for what is no regular file.
func (p *Process) findCode(m Mapping) (*CodeFile, error) {
	root := p.dir + "/root"
	var other *CodeFile
	for _, path := range m.paths() {
		file := &CodeFile{path, m, func() (*regular.File, error) { return regular.Open(path) }}
		if file.isThere() {
			return file, nil
		}
		below := &CodeFile{root + path, m, func() (*regular.File, error) { return regular.OpenBelow(root, path, root+path) }}
		if other == nil && below.isThere() {
			other = below
		}
	}
	if other != nil || m.Deleted {
		return other, nil
	}
	link := fmt.Sprintf("%s/map_files/%x-%x", p.dir, m.Start, m.End)
	file := &CodeFile{root + m.Path, m, func() (*regular.File, error) { return regular.Open(link) }}
	opened, err := file.Open()
	switch {
	case err == nil:
		return file, opened.Close()
	case errors.Is(err, fs.ErrPermission):
		return nil, errHidden
	}
	return nil, nil // a device, or the process has ended
}

// isThere reports whether the file is where its path leads to.
func (f *CodeFile) isThere() bool {
	file, err := f.Open()
	return err == nil && file.Close() == nil
}

// Open opens the file, if it still is the mapped one.
func (f *CodeFile) Open() (*os.File, error) {
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	if !f.mapping.isOf(file.File, file.Info) {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: f.Path, Err: errReplaced}
	}
	return file.File, nil
}
