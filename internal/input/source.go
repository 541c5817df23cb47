package input

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

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
	head    []byte  // its beginning, once typ is known; nil before
	content *[]byte // of a member, once Load has read it; of loaded
}

// Source returns all of a file.
func (f *File) Source() *Source { return &Source{Name: f.Path, Size: f.Size(), File: f} }

// Err returns what keeps the source from being read, as does a member of a thin archive
// that is not there.
func (s *Source) Err() error { return s.err }

// ReadAt implements io.ReaderAt. A source serves one goroutine at a time.
func (s *Source) ReadAt(b []byte, off int64) (n int, err error) {
	switch {
	case off >= s.Size:
		return 0, io.EOF
	case off >= 0 && s.content != nil:
		return readFrom(*s.content, b, off)
	case off >= 0 && off+int64(len(b)) <= int64(len(s.head)):
		return copy(b, s.head[off:]), nil
	}
	n, err = s.File.ReadAt(b[:min(int64(len(b)), s.Size-off)], s.Start+off)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// Held implements elfreloc.BoundedReader.
func (s *Source) Held() int64 { return min(s.Size, s.File.Held()) }

// CheckRead implements elfreloc.BoundedReader.
func (s *Source) CheckRead(off, n int64) error { return s.File.CheckRead(s.Start+off, n) }

// loadedSize is the size of the largest source that Load reads, in bytes.
const loadedSize = 1 << 20

// loaded are buffers of sources that are no longer read.
var loaded sync.Pool

// Load reads all of a source at once, if it is not large: one read costs less than the twenty of a conversion, which report
// errors. Its memory is used again after Unload or, if the source is a whole file, after File.Close.
func (s *Source) Load() {
	to := &s.content
	if s.Start == 0 && s.Size == s.File.Size() {
		to = &s.File.content
	}
	if *to != nil || s.Size > loadedSize {
		return
	}
	buffer, _ := loaded.Get().(*[]byte)
	if buffer == nil || int64(cap(*buffer)) < s.Size {
		buffer = new(make([]byte, s.Size, s.Size+s.Size/2))
	}
	*buffer = (*buffer)[:s.Size]
	if _, err := s.File.ReadAt(*buffer, s.Start); err != nil {
		return
	}
	*to = buffer
}

// Unload releases what Load has read of a member of an archive.
func (s *Source) Unload() { unload(&s.content) }

// unload releases the content of a source, if there is any.
func unload(content **[]byte) {
	if *content != nil {
		loaded.Put(*content)
		*content = nil
	}
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
	if s.head != nil || s.err != nil {
		return s.typ, s.err
	}
	head := make([]byte, min(s.Size, HeadSize))
	if err := s.readFull(head); err != nil {
		return UnknownFile, err
	}
	s.typ, s.head = recognise(head), head
	return s.typ, nil
}

// IsArchive reports whether a source is an archive, of any kind.
func (s *Source) IsArchive() (bool, error) {
	typ, err := s.Type()
	return typ == ArchiveFile || typ == ThinArchiveFile, err
}

// IsLinked reports whether a source is a program or a shared library.
func (s *Source) IsLinked() bool {
	_, typ, ok := s.Ident()
	return ok && s.Member == nil && (typ == elf.ET_EXEC || typ == elf.ET_DYN)
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
