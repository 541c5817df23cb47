package archive

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"sdtconvert/internal/paths"
)

// Member is a member of an archive. Offsets and sizes are in bytes.
type Member struct {
	// Name is the member's name. In a thin archive it is the path of a file, as it
	// is written there: relative to the directory of the archive, if it is relative.
	Name   string
	Header int64 // offset of its header
	Start  int64 // offset of its contents; in a thin archive, where they would be
	Size   int64 // of its contents; that in a thin archive may be out of date
	Next   int64 // offset of the next header, or of the archive's end

	// Origin is, in a thin archive, the offset of the header in the archive that
	// Name names, of which this is a member; 0 when Name names the member itself.
	Origin int64
}

// Members goes through the members in the order of the file. It ends with the
// first error.
func (a *Archive) Members() iter.Seq2[*Member, error] {
	return func(yield func(*Member, error) bool) {
		a.namesRead = 0
		for off := a.first; off < a.size; {
			m, err := a.member(off)
			if !yield(m, err) || err != nil {
				return
			}
			off = m.Next
		}
	}
}

// member returns the member whose header is at an offset.
func (a *Archive) member(off int64) (*Member, error) {
	h, err := a.readHeader(off, func(string) bool { return !a.Thin })
	if err != nil {
		return nil, err
	}
	if isTable(h.name) {
		return nil, a.errorf(off, "is the table %q, which belongs before all members", h.name)
	}
	m := &Member{Header: off, Size: h.size, Next: a.next(h)}
	if reference, ok := strings.CutPrefix(h.name, "/"); ok {
		m.Start = off + headerSize
		return m, a.longName(m, reference)
	}
	if m.Name, m.Start, err = a.bsdName(h); err != nil {
		return nil, err
	}
	m.Size -= m.Start - off - headerSize
	if m.Name == "" {
		return nil, a.errorf(off, "has no name")
	}
	return m, nil
}

// bsdName returns the name of a member as BSD writes it, behind the header, or one
// that fits the header in any format, and the offset of the contents.
func (a *Archive) bsdName(h header) (string, int64, error) {
	start := h.off + headerSize
	field, behind := strings.CutPrefix(h.name, "#1/")
	if !behind {
		name, _, _ := strings.Cut(h.name, "/") // GNU ends it so, and BSD by spaces
		return name, start, nil
	}
	n, err := number(field)
	if err != nil || n > min(h.size, maxName) || a.Thin {
		return "", 0, a.errorf(h.off, "its name is %q, of %d bytes", h.name, h.size)
	}
	b, err := a.read(start, n)
	return string(bytes.TrimRight(b, "\x00")), start + n, err
}

// maxName bounds the length of a name, in bytes: four times the longest path of Linux.
const maxName = 16 << 10

// longName finds the name of a member at the offset in the table of names that its
// header has, and the offset behind a colon of a thin archive's.
func (a *Archive) longName(m *Member, field string) error {
	// Where a name is longer than the field, GNU ar may leave a "/" at its end.
	field, _, _ = strings.Cut(field, " ")
	at, origin, nested := strings.Cut(field, ":")
	off, err := number(at)
	if err == nil && nested {
		m.Origin, err = number(origin)
	}
	if err != nil || nested && !a.Thin {
		return a.errorf(m.Header, "its name is %q", "/"+field)
	}
	if off >= a.names.end-a.names.start {
		return a.errorf(m.Header, "its name is at offset %d of %d bytes of long names", off, a.names.end-a.names.start)
	}
	off += a.names.start
	for n := min(256, a.names.end-off); ; n = min(4*n, a.names.end-off, maxName) {
		b, err := a.read(off, n)
		if err != nil {
			return err
		}
		// GNU ends a name by "/\n", and Windows by NUL.
		if end := bytes.IndexAny(b, "\n\x00"); end >= 0 {
			m.Name = strings.TrimSuffix(string(b[:end]), "/")
			break
		}
		if n == maxName || n == a.names.end-off {
			return a.errorf(m.Header, "its name has no end")
		}
	}
	if m.Name == "" {
		return a.errorf(m.Header, "has no name")
	}
	// Members of one archive within a thin one share its path. But a hostile archive
	// could have names of many times its size.
	if a.namesRead += int64(len(m.Name)); a.namesRead > sharing+a.size {
		return a.errorf(m.Header, "too many members share long names")
	}
	return nil
}

// sharing bounds by how many bytes all long names may be longer than their archive.
const sharing = 64 << 20

// Path returns the path of the file that a member of a thin archive is or, if it has an
// Origin, of the archive that it is in. A relative one begins in the directory of the
// thin archive.
func (a *Archive) Path(m *Member) string {
	if filepath.IsAbs(m.Name) {
		return m.Name
	}
	return paths.Beside(a.Name, m.Name)
}

// ErrOutside says that a path of a thin archive leads out of the archive's directory.
var ErrOutside = errors.New("lies outside of the archive's directory")

// CheckInside refuses a path that leads out of the directory of a thin archive, by
// itself or by a symbolic link. The author of such an archive could have any
// file read, or converted, that its user may read.
func (a *Archive) CheckInside(path string) error {
	directory, err := paths.Real(paths.Directory(a.Name))
	if err != nil {
		return err
	}
	real, err := paths.Real(path)
	if errors.Is(err, os.ErrNotExist) {
		real, err = filepath.Abs(path) // opening it will tell what is wrong
	}
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(directory, real)
	if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return fmt.Errorf("%w, at %s", ErrOutside, real)
	}
	return nil
}
