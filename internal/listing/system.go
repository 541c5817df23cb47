package listing

import (
	"cmp"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/dof"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/parallel"
	"sdtconvert/linkerset"
)

// libraryDirectories are where systems keep libraries, and what those load.
var libraryDirectories = []string{"/lib*", "/usr/lib*", "/usr/local/lib*"}

// Unread counts what could not be read, for one reason.
type Unread struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// System lists the linked files that processes have mapped as code, and those below the directories of
// libraries, by path. done is called with each listing. It returns why others could not be read.
func System(o *Options, jobs int, done func(*Listing)) ([]Unread, error) {
	s := &system{Options: *o, reasons: map[string]int{}}
	s.Warn = func(error) {}
	if err := s.findMapped(); err != nil {
		return nil, err
	}
	s.findLibraries()
	files, err := input.Distinct(s.files)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	parallel.InOrder(len(files), jobs, func(i int) *fileListing {
		out := newListing(files[i])
		return &fileListing{out, s.list(files[i], out)}
	}, func(_ int, f *fileListing) {
		switch {
		case f.err != nil && !errors.Is(f.err, errNoProbes):
			s.unread(f.err)
		case len(f.listing.Probes)+len(f.listing.Errors) > 0:
			done(f.listing)
		}
	})
	return s.unreads(), nil
}

// system finds and lists files.
type system struct {
	Options
	files   []string
	reasons map[string]int // how many files or processes could not be read, by reason
}

type fileListing struct {
	listing *Listing
	err     error
}

// unread counts a reason, without the path that it is of.
func (s *system) unread(err error) {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	} else if of, ok := errors.AsType[*elfreloc.Error](err); ok {
		err = of.Err
	}
	s.reasons[err.Error()]++
}

func (s *system) unreads() []Unread {
	all := []Unread{}
	for reason, n := range s.reasons {
		all = append(all, Unread{reason, n})
	}
	slices.SortFunc(all, func(a, b Unread) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason)) })
	return all
}

// findMapped finds the files whose code processes have mapped.
func (s *system) findMapped() error {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		files, err := image.MappedCode(pid)
		switch {
		case errors.Is(err, image.ErrNoMemory):
		case err != nil:
			s.unread(err)
		}
		s.files = append(s.files, files...)
	}
	return nil
}

// findLibraries finds the regular files below the directories of libraries. A directory that is a
// symbolic link is found by its other name.
func (s *system) findLibraries() {
	for _, pattern := range libraryDirectories {
		directories, _ := filepath.Glob(pattern)
		for _, directory := range directories {
			filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
				switch {
				case err != nil:
					s.unread(err)
				case entry.Type().IsRegular():
					s.files = append(s.files, path)
				}
				return nil
			})
		}
	}
}

// list lists a file, if it is a linked one whose headers say that it may have probes.
func (s *system) list(path string, out *Listing) error {
	in, err := input.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	src := in.Source()
	if typ, err := src.Type(); err != nil || typ != filetype.ELF {
		return err
	}
	object, err := src.Image()
	if err != nil || object.Machine == nil || object.Type != elf.ET_DYN && object.Type != elf.ET_EXEC || !s.mayHaveProbes(object.Object) {
		return err
	}
	code, err := locate.NewCode(object, s.Options.Options)
	if err != nil {
		return err
	}
	defer code.Close()
	return s.code(code, code.Image, out)
}

// mayHaveProbes reports whether a file has sections of notes, of records or of DTrace's object
// format.
func (s *system) mayHaveProbes(o *elfreloc.Object) bool {
	return slices.ContainsFunc(o.Sections, func(section elfreloc.Section) bool {
		isRecords := func(l linkerset.Layout) bool {
			return section.Name == l.Section(arch.Probe) || section.Name == l.Section(arch.Enabled)
		}
		return section.Name == stapsdt.Section || section.Name == dof.SectionName || slices.ContainsFunc(s.Layouts, isRecords)
	})
}
