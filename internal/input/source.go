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

	err error // that keeps it from being read

	typ     filetype.Type
	hasType bool // typ is known
}

// Source returns all of a file.
func (f *File) Source() *Source { return &Source{Name: f.Path, Size: f.Size(), File: f} }

// Err returns what keeps the source from being read, as does a member of a thin archive
// that is not there.
func (s *Source) Err() error { return s.err }

// ReadAt implements io.ReaderAt.
func (s *Source) ReadAt(b []byte, off int64) (n int, err error) {
	if off >= s.Size {
		return 0, io.EOF
	}
	n, err = s.File.ReadAt(b[:min(int64(len(b)), s.Size-off)], s.Start+off)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
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
	head := make([]byte, min(s.Size, filetype.HeadSize))
	if err := s.readFull(head); err != nil {
		return filetype.Unknown, err
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
