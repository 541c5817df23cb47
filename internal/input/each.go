package input

import (
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
)

// Options say what is opened.
type Options struct {
	// FollowThin permits to open files outside of the directory of a thin archive.
	FollowThin bool
	// Unpack reads what is in compressed files, which are not changed.
	Unpack bool
}

// Each opens a file and calls work with what is to be worked on in it: all of it or,
// if it is an archive, each of its members, objects or not, in their order. The first
// error ends it.
func Each(path string, o Options, work func(src *Source) error) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if o.Unpack {
		if err := f.Unpack(); err != nil {
			return err
		}
	}
	return f.Each(o, work)
}

// Each is Each for a file that is open.
func (f *File) Each(o Options, work func(src *Source) error) error {
	src := f.Source()
	if isArchive, err := src.IsArchive(); err != nil || !isArchive {
		if err != nil {
			return err
		}
		return work(src)
	}
	a, err := f.Archive(o)
	if err != nil {
		return err
	}
	return a.Each(work)
}

// Archive is an archive that is a file.
type Archive struct {
	*archive.Archive
	File *File
	o    Options
}

// Archive reads the headers of an archive's tables.
func (f *File) Archive(o Options) (*Archive, error) {
	a := &Archive{File: f, o: o}
	var err error
	a.Archive, err = archive.Open(f, f.Size(), f.Path)
	return a, err
}

// Each calls work with each member, one after the other.
func (a *Archive) Each(work func(src *Source) error) error {
	return a.Batches(func(batch []*Source) error {
		for _, src := range batch {
			if err := work(src); err != nil {
				return err
			}
		}
		return nil
	})
}

// The most members in a batch, and their length in bytes unless it is one alone: what
// is made of them is in memory at once.
const (
	batchMembers = 256
	batchSize    = 8 << 20
)

// Batches calls work with neighbouring members, which may be worked on at once, until
// none is left.
func (a *Archive) Batches(work func(batch []*Source) error) error {
	var batch []*Source
	size := int64(0)
	flush := func() (err error) {
		if len(batch) > 0 {
			err = work(batch)
		}
		batch, size = nil, 0
		return err
	}
	for m, err := range a.Members() {
		if err != nil {
			return errors.Join(flush(), err)
		}
		if a.Thin {
			if err := a.thin(m, func(src *Source) error { return work([]*Source{src}) }); err != nil {
				return err
			}
			continue
		}
		if len(batch) == batchMembers || size+m.Size > batchSize {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, size = append(batch, a.source(m)), size+m.Size
	}
	return flush()
}

func (a *Archive) source(m *archive.Member) *Source {
	return &Source{Name: a.File.Path + "(" + m.Name + ")", Size: m.Size, File: a.File, Start: m.Start, Member: m}
}

// thin calls work with the file that a member of a thin archive names. If it cannot be opened, the source has the
// error.
func (a *Archive) thin(m *archive.Member, work func(src *Source) error) error {
	src := a.source(m)
	if m.Origin != 0 {
		src.err = &NestedError{src.Name, a.Path(m)}
		return work(src)
	}
	f, err := a.open(m)
	if err != nil {
		src.err = fmt.Errorf("%s: %w", src.Name, err)
		return work(src)
	}
	defer f.Close()
	src.File, src.Start, src.Size = f, 0, f.Size()
	return work(src)
}

// open opens the file that a member of a thin archive names.
func (a *Archive) open(m *archive.Member) (*File, error) {
	path := a.Path(m)
	if !a.o.FollowThin {
		if err := a.CheckInside(path); err != nil {
			if errors.Is(err, archive.ErrOutside) {
				err = fmt.Errorf("%w; --follow-thin takes it", err)
			}
			return nil, err
		}
	}
	f, err := Open(path)
	if err != nil || a.o.FollowThin {
		return f, err
	}
	// A link may have changed since: what is open says where it is.
	if opened := f.file.RealPath(); opened != "" {
		if err := a.CheckInside(opened); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// NestedError says that a member of a thin archive is in another archive.
type NestedError struct {
	Name string // lib.a(inner.a)
	Path string // of the other archive
}

func (e *NestedError) Error() string {
	return fmt.Sprintf("%s: is a member of the archive %s, which is not read here; make the archive anew with ar, of files alone", e.Name, e.Path)
}

// Link opens the files of one link: objects, archives, and perhaps shared libraries.
type Link struct {
	Options
	StubTexts [][]byte // what contains none of them need be no object, see Source.Relocatable
	Shared    bool     // takes shared libraries, for what they define

	first *elfreloc.Object // closed; all others are of its machine
}

// Each calls work with the objects of a file, one after the other, and report with
// every error, of work too.
func (l *Link) Each(path string, work func(o *Object) error, report func(error)) {
	err := Each(path, l.Options, func(src *Source) error {
		if err := l.source(src, work); err != nil {
			report(err)
		}
		return nil
	})
	if err != nil {
		report(err)
	}
}

func (l *Link) source(src *Source, work func(o *Object) error) error {
	o, err := src.ELF(l.StubTexts)
	if err == nil && !(l.Shared && src.Member == nil && o.Type == elf.ET_DYN) {
		o, err = o.relocatable(l.StubTexts)
	}
	if errors.Is(err, ErrSkipped) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.sameMachine(o.Object); err != nil {
		return err
	}
	return work(o)
}

// sameMachine refuses objects that cannot be linked with each other.
func (l *Link) sameMachine(o *elfreloc.Object) error {
	if l.first == nil {
		l.first = o
	}
	f := l.first
	if f.Machine == o.Machine && f.Encoding.Class == o.Encoding.Class && f.Encoding.Order == o.Encoding.Order {
		return nil
	}
	return fmt.Errorf("%s: is for %s, and %s for %s; give the objects of one link", o.Name, abi(o), f.Name, abi(f))
}

func abi(o *elfreloc.Object) string {
	return fmt.Sprintf("%v, %v, %v", o.Machine, o.Encoding.Class, o.Encoding.Order)
}
