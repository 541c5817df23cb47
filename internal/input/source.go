package input

import (
	"errors"
	"fmt"
	"io"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/filetype"
)

// Source is the bytes of a file, or of one member of an archive.
type Source struct {
	Name   string          // of the file, or lib.a(member.o)
	Size   int64           // bytes
	File   *File           // that holds it
	Start  int64           // where it begins there
	Member *archive.Member // nil for what is a file of its own
	Inner  *archive.Member // of another archive, that is a member of a thin one, or nil

	err      error  // that keeps it from being read
	memory   []byte // all of a member, if it was read already
	borrowed bool   // the memory is the next member's too

	typ     filetype.Type
	hasType bool // typ is known
}

// Source returns all of a file.
func (f *File) Source() *Source { return &Source{Name: f.Path, Size: f.Size(), File: f} }

// Err returns what keeps the source from being read, as does a member of a thin archive
// that is not there.
func (s *Source) Err() error { return s.err }

// ReadAt implements io.ReaderAt.
func (s *Source) ReadAt(b []byte, off int64) (int, error) {
	if s.memory == nil && s.Member == nil {
		return s.File.ReadAt(b, off)
	}
	if off >= s.Size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), s.Size-off))
	var err error
	if s.memory != nil {
		copy(b[:n], s.memory[off:])
	} else {
		n, err = s.File.ReadAt(b[:n], s.Start+off)
	}
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// Slice implements elfreloc.Memory.
func (s *Source) Slice(off, n int64) []byte {
	if s.memory != nil {
		return s.memory[off : off+n]
	}
	if s.Start == 0 || s.File.Loaded() {
		return s.File.Slice(s.Start+off, n)
	}
	return nil
}

// loadedMember is the length of the longest member that Load reads, in bytes. What
// is made of it keeps it in memory.
const loadedMember = 64 << 10

// Load reads a small source into memory that is good for as long as its file is
// open, or in use.
func (s *Source) Load() error {
	switch {
	case s.Size == s.File.Size():
		return s.File.Load()
	case s.memory != nil && !s.borrowed, s.File.Loaded(), s.Size > loadedMember:
		return nil
	}
	memory := make([]byte, s.Size)
	if err := s.readFull(memory); err != nil {
		return err
	}
	s.memory, s.borrowed = memory, false
	return nil
}

// readFull reads the beginning of a source, or all of it.
func (s *Source) readFull(b []byte) error {
	n, err := s.ReadAt(b, 0)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = ErrChanged
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}

// Type recognises a source by its first bytes.
func (s *Source) Type() (filetype.Type, error) {
	if s.hasType || s.err != nil {
		return s.typ, s.err
	}
	n := min(s.Size, filetype.HeadSize)
	head := s.Slice(0, n)
	if head == nil {
		head = make([]byte, n)
		if err := s.readFull(head); err != nil {
			return filetype.Unknown, err
		}
	}
	s.typ, s.hasType = filetype.Recognise(head), true
	return s.typ, nil
}

// IsArchive reports whether a source is an archive, of any kind.
func (s *Source) IsArchive() (bool, error) {
	typ, err := s.Type()
	return typ == filetype.Archive || typ == filetype.ThinArchive, err
}

// Mentions reports whether any of the texts occurs anywhere in a source.
func (s *Source) Mentions(texts [][]byte) (bool, error) {
	return elfreloc.StreamContains(s, 0, s.Size, texts)
}
