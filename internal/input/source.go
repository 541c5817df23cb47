package input

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
)

// Source is the bytes of a file, or of one member of an archive.
type Source struct {
	Name   string          // of the file, or lib.a(member.o)
	Size   int64           // bytes
	File   *File           // that holds it
	Start  int64           // where it begins there
	Member *archive.Member // nil for what is a file of its own

	err error // that keeps it from being read

	typ     FileType
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
func (s *Source) Type() (FileType, error) {
	if s.hasType || s.err != nil {
		return s.typ, s.err
	}
	head := make([]byte, min(s.Size, HeadSize))
	if err := s.readFull(head); err != nil {
		return UnknownFile, err
	}
	s.typ, s.hasType = recognise(head), true
	return s.typ, nil
}

// IsArchive reports whether a source is an archive, of any kind.
func (s *Source) IsArchive() (bool, error) {
	typ, err := s.Type()
	return typ == ArchiveFile || typ == ThinArchiveFile, err
}

// Mentions reports whether any of the texts occurs anywhere in a source.
func (s *Source) Mentions(texts [][]byte) (bool, error) {
	return elfreloc.StreamContains(s, 0, s.Size, texts)
}

// Target is what an ELF file is made for.
type Target struct {
	Class   elf.Class
	Data    elf.Data
	Machine elf.Machine
}

// identSize is how many bytes begin headers of either class alike: e_ident, e_type and
// e_machine (gABI, "ELF Header").
const identSize = elf.EI_NIDENT + 4

// Ident returns what the first bytes of an ELF file say, and reads no others. ok
// is false for another file, and for an unknown kind.
func (s *Source) Ident() (target Target, typ elf.Type, ok bool) {
	head := make([]byte, identSize)
	if s.err != nil {
		return target, 0, false
	}
	if n, _ := s.ReadAt(head, 0); n < len(head) || !strings.HasPrefix(string(head), elf.ELFMAG) || elf.Version(head[elf.EI_VERSION]) != elf.EV_CURRENT {
		return target, 0, false
	}
	target.Class, target.Data = elf.Class(head[elf.EI_CLASS]), elf.Data(head[elf.EI_DATA])
	var order binary.ByteOrder
	switch target.Data {
	case elf.ELFDATA2LSB:
		order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		order = binary.BigEndian
	default:
		return Target{}, 0, false
	}
	target.Machine = elf.Machine(order.Uint16(head[elf.EI_NIDENT+2:]))
	return target, elf.Type(order.Uint16(head[elf.EI_NIDENT:])), true
}
