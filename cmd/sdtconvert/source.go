package main

import (
	"errors"
	"fmt"
	"io"

	"sdtconvert/internal/archive"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/replace"
)

// source is the bytes of a file, or of one member of an archive.
type source struct {
	name   string          // of the file, or lib.a(member.o)
	size   int64           // bytes
	file   *replace.Input  // that holds it
	start  int64           // where it begins there
	member *archive.Member // nil for what is a file of its own
	inner  *archive.Member // of another archive, that is a member of a thin one, or nil

	err    error  // that keeps it from being read
	memory []byte // all of a member, if it was loaded
	lent   bool   // and the memory is used for the next one too

	typ   filetype.Type
	known bool   // whether typ is
	head  []byte // by which it was recognised, or nil
}

func wholeFile(in *replace.Input) *source {
	return &source{name: in.Path, size: in.Info.Size(), file: in}
}

// ReadAt reads from memory where the source was loaded.
func (s *source) ReadAt(b []byte, off int64) (int, error) {
	if off < int64(len(s.head)) && int64(len(b)) <= int64(len(s.head))-off {
		return copy(b, s.head[off:]), nil
	}
	if s.memory == nil && s.member == nil {
		return s.file.ReadAt(b, off)
	}
	if off >= s.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), s.size-off))
	var err error
	if s.memory != nil {
		copy(b[:n], s.memory[off:])
	} else {
		n, err = s.file.ReadAt(b[:n], s.start+off)
	}
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// Slice returns bytes of a source in memory. They stay as they are until the file
// is closed or, if they are lent, until the next member's turn.
func (s *source) Slice(off, n int64) []byte {
	if s.memory != nil {
		return s.memory[off : off+n]
	}
	return s.file.Slice(s.start+off, n)
}

// loadedMember is the length of the longest member that is read whole to be converted,
// in bytes. What is made of it keeps it in memory.
const loadedMember = 64 << 10

// load reads a small source into memory of its own.
func (s *source) load() error {
	switch {
	case s.size == s.file.Info.Size():
		return s.file.Load()
	case s.memory != nil && !s.lent, s.file.Loaded(), s.size > loadedMember:
		return nil
	}
	memory := make([]byte, s.size)
	if err := s.readFull(memory); err != nil {
		return err
	}
	s.memory, s.lent = memory, false
	return nil
}

// readFull reads the beginning of a source, or all of it.
func (s *source) readFull(b []byte) error {
	n, err := s.ReadAt(b, 0)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = replace.ErrChanged
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// recognise tells the type of a source by its first bytes.
func (s *source) recognise() (filetype.Type, error) {
	if s.known || s.err != nil {
		return s.typ, s.err
	}
	n := min(s.size, filetype.HeadSize)
	head := s.Slice(0, n)
	if head == nil {
		head = make([]byte, n)
		if err := s.readFull(head); err != nil {
			return filetype.Unknown, err
		}
		s.head = head
	}
	s.typ, s.known = filetype.Recognise(head), true
	return s.typ, nil
}

func (s *source) isArchive() (bool, error) {
	typ, err := s.recognise()
	return typ == filetype.Archive || typ == filetype.ThinArchive, err
}
