package listing

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/regular"
	"sdtconvert/linkerset"
)

// errNoProbes is of what holds no records.
var errNoProbes = errors.New("holds no records of probes")

// File lists an object or a linked image, or the members of an archive that hold
// records. done is called with each listing, also with one of nothing but an error.
func File(path string, o *Options, done func(*Listing)) {
	found := false
	err := input.Each(path, input.Options{FollowThin: o.FollowThin, Unpack: true}, func(src *input.Source) error {
		out := newListing(src.Name)
		err := o.source(src, out)
		if src.Member != nil && errors.Is(err, errNoProbes) {
			return nil
		}
		if err != nil {
			out.fail(err)
		}
		found = true
		done(out)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", path, errNoProbes)
	}
	if err != nil {
		out := newListing(path)
		out.fail(err)
		done(out)
	}
}

// largeFile is the size of a file that is worth a parallel.ReserveHeap, in bytes.
const largeFile = 8 << 20

// source lists a file or a member of an archive.
func (o *Options) source(src *input.Source, out *Listing) error {
	if typ, err := src.Type(); err == nil && typ != input.ELFFile && src.Member != nil {
		return errNoProbes
	}
	if src.Size > largeFile {
		parallel.ReserveHeap()
	}
	code, err := locate.Open(src, o.Places)
	if err != nil {
		return err
	}
	defer code.Close()
	return o.code(code, code.Image, out)
}

// A process that has just started has records that its loader has not relocated yet, so they lead
// to no code.
const (
	startAttempts = 9
	startPause    = 5 * time.Millisecond // after the first attempt; each is twice the last, together 1.3 s
	startTime     = 2 * time.Second      // after which no attempt follows
)

// Process lists all that is loaded in a process and holds records. done is called
// with the listing of each module; an error is of the process. If a record leads nowhere, the
// process is read again a little later.
func Process(pid int, o *Options, done func(*Listing)) error {
	begin := time.Now()
	for attempt := 1; ; attempt++ {
		var warnings []error
		once := *o
		once.Places.Warn = func(err error) { warnings = append(warnings, err) }
		listings, err := once.process(pid)
		isTransient := func(l *Listing) bool { return l.transient }
		if attempt < startAttempts && time.Since(begin) < startTime && slices.ContainsFunc(listings, isTransient) {
			time.Sleep(startPause << (attempt - 1))
			continue
		}
		for _, err := range warnings {
			o.Places.Warn(err)
		}
		for _, listing := range listings {
			done(listing)
		}
		return err
	}
}

// process lists the modules of a process as they are now.
func (o *Options) process(pid int) (listings []*Listing, _ error) {
	process, err := image.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	codes := locate.NewModules(o.Places)
	defer codes.Close()
	for _, m := range process.Modules {
		out := newListing(m.Path)
		note := fmt.Errorf("%s: %s: %s", process.Name(), m.Path, m.Note)
		switch {
		case m.Limited:
			out.Errors = append(out.Errors, note.Error())
			listings = append(listings, out)
		case m.Note != "":
			o.Places.Warn(note)
		}
		if m.Image == nil {
			continue
		}
		code := codes.CodeOf(m)
		err := o.code(code, moduleMemory{process, m}, out)
		if errors.Is(err, errNoProbes) {
			continue
		}
		if err != nil {
			out.fail(err)
		}
		listings = append(listings, out)
	}
	if len(listings) == 0 {
		return nil, fmt.Errorf("%s: %w", process.Name(), errNoProbes)
	}
	return listings, nil
}

// moduleMemory is the memory of a process, with the arrays of one module.
type moduleMemory struct {
	*image.Process
	module *image.Module
}

// Arrays implements image.Image.
func (v moduleMemory) Arrays(name string) ([]image.Range, error) {
	return v.ModuleArrays(v.module, name)
}

// libraryDirectories are where systems keep libraries, and what those load.
var libraryDirectories = []string{"/lib*", "/usr/lib*", "/usr/local/lib*"}

// Unread counts what could not be read, for one reason.
type Unread struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// System lists the linked files that processes have mapped as code, and those below the directories of
// libraries, by path. done is called with each listing, and progress after each file. It returns why
// others could not be read.
func System(o *Options, jobs int, done func(*Listing), progress func(files, total int)) ([]Unread, error) {
	s := &system{Options: *o, mapped: map[string]*image.CodeFile{}, reasons: map[string]int{}}
	s.Places.Warn = func(error) {}
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
		err := s.list(files[i], out)
		if regular.IsLimit(err) { // the file has to be named
			out.fail(err)
		}
		return &fileListing{out, err}
	}, func(i int, f *fileListing) {
		switch {
		case f.err != nil && len(f.listing.Errors) == 0 && !errors.Is(f.err, errNoProbes):
			s.unread(f.err)
		case len(f.listing.Probes)+len(f.listing.Errors) > 0:
			done(f.listing)
		}
		progress(i+1, len(files))
	})
	return s.unreads(), nil
}

// system finds and lists files.
type system struct {
	Options
	files   []string
	mapped  map[string]*image.CodeFile // by path; others are libraries
	reasons map[string]int             // how many files or processes could not be read, by reason
}

type fileListing struct {
	listing *Listing
	err     error
}

// unread counts a reason, without the path that it is of.
func (s *system) unread(err error) {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	} else if fileErr, ok := errors.AsType[*elfreloc.Error](err); ok {
		err = fileErr.Err
	}
	s.reasons[err.Error()]++
}

func (s *system) unreads() []Unread {
	unreads := []Unread{}
	for reason, n := range s.reasons {
		unreads = append(unreads, Unread{reason, n})
	}
	slices.SortFunc(unreads, func(a, b Unread) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason)) })
	return unreads
}

// findMapped finds the files whose code processes have mapped.
func (s *system) findMapped() error {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var code image.CodeFiles
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		if err := code.Add(pid); err != nil && !errors.Is(err, image.ErrNoMemory) {
			s.unread(err)
		}
	}
	for _, f := range code.Files {
		s.files = append(s.files, f.Path)
		s.mapped[f.Path] = f
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

// mostOfFile bounds what is read of a file at once, in bytes: nobody has named it.
const mostOfFile = 1 << 30

// open opens a file: a mapped one, or a library.
func (s *system) open(path string) (*regular.File, error) {
	mapped := s.mapped[path]
	if mapped == nil {
		return regular.Open(path)
	}
	f, err := mapped.Open()
	if err != nil {
		return nil, err
	}
	return regular.FromFile(f, path)
}

// list lists a file, if it is a linked one whose headers say that it may have probes.
func (s *system) list(path string, out *Listing) error {
	f, err := s.open(path)
	if err != nil {
		return err
	}
	f.Most = mostOfFile
	in := input.FromFile(f)
	defer in.Close()
	src := in.Source()
	if typ, err := src.Type(); err != nil || typ != input.ELFFile {
		return err
	}
	object, err := src.Image()
	if err != nil || object.Machine == nil || object.Type != elf.ET_DYN && object.Type != elf.ET_EXEC || !s.mayHaveProbes(object.Object) {
		return err
	}
	code, err := locate.NewCode(object, s.Places)
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
		return section.Name == notes.StapsdtSection || section.Name == dof.SectionName || slices.ContainsFunc(s.Layouts, isRecords)
	})
}
