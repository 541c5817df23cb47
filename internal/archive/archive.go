// Package archive reads the archives of ar, and lays out new ones in which
// members have changed.
//
// All that are in use for ELF are one format with two ways to write what it has
// no room for: that of System V and GNU (a member "/" or "/SYM64/" is the index of
// symbols, "//" holds long names), and that of BSD ("__.SYMDEF" and "#1/<length>").
// A thin archive of GNU ar, or LLVM's, has the headers and the index, while the
// members stay files of their own.
//
// Nothing is read before it is asked for, and nothing is kept of a member behind
// the next one, so that an archive may have any number of them. What does not
// change, the names and dates and owners of members among it, is copied and not
// made anew.
package archive

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	magic      = "!<arch>\n"
	thinMagic  = "!<thin>\n"
	headerSize = 60
	trailer    = "`\n" // ends a header
)

// The fields of a header that matter here, as offsets in it. The date, the owner
// and the mode are in between.
const (
	nameEnd   = 16
	sizeStart = 48
	sizeEnd   = 58
)

// Archive is an open archive.
type Archive struct {
	Name string // of the file, for messages
	Thin bool   // whether the members are files of their own

	r    io.ReaderAt
	size int64

	first     int64 // offset of the first header that is neither of index nor of names
	index     *index
	names     span  // of the long names, in the file
	coff      bool  // has the tables of Windows' librarians
	namesRead int64 // bytes of long names that were read, since Members began
}

// span is a range of bytes of the file.
type span struct{ start, end int64 }

// Open reads the headers of the tables that an archive begins with. The archive
// reads from r, of size bytes, for as long as it is used.
func Open(r io.ReaderAt, size int64, name string) (*Archive, error) {
	a := &Archive{Name: name, r: r, size: size}
	head, err := a.read(0, min(size, int64(len(magic))))
	if err != nil {
		return nil, err
	}
	switch string(head) {
	case magic:
	case thinMagic:
		a.Thin = true
	default:
		return nil, fmt.Errorf("%s: is not an archive", name)
	}
	return a, a.findTables()
}

// HasIndex reports whether the archive has an index of symbols.
func (a *Archive) HasIndex() bool { return a.index != nil }

// errorf returns an error of what stands at an offset of the file.
func (a *Archive) errorf(off int64, format string, args ...any) error {
	return fmt.Errorf("%s: member at offset %#x: %w", a.Name, off, fmt.Errorf(format, args...))
}

// read reads n bytes, which the caller has checked to lie within the file.
func (a *Archive) read(off, n int64) ([]byte, error) {
	if r, ok := a.r.(interface{ CheckRead(off, n int64) error }); ok { // of a file with holes
		if err := r.CheckRead(off, n); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	b := make([]byte, n)
	if got, err := a.r.ReadAt(b, off); got < len(b) {
		if err == io.EOF {
			err = fmt.Errorf("the file ends at offset %#x: it was shortened while it was read", off+int64(got))
		}
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return b, nil
}

// header is what a member's header says.
type header struct {
	name string // the field, without the spaces behind it
	off  int64  // of the header
	size int64  // of what follows it, as the header has it
	end  int64  // offset of the next header, but for a pad byte
}

// readHeader reads the header at an offset. inside reports whether the contents of a member of this
// name follow the header.
func (a *Archive) readHeader(off int64, inside func(name string) bool) (header, error) {
	if a.size-off < headerSize {
		return header{}, a.errorf(off, "the archive ends within its header, at %#x", a.size)
	}
	b, err := a.read(off, headerSize)
	if err != nil {
		return header{}, err
	}
	if string(b[sizeEnd:]) != trailer {
		return header{}, a.errorf(off, "is not a member header: it ends in %q, want %q", b[sizeEnd:], trailer)
	}
	h := header{name: strings.TrimRight(string(b[:nameEnd]), " "), off: off, end: off + headerSize}
	field := strings.TrimRight(string(b[sizeStart:sizeEnd]), " ")
	if h.size, err = number(field); err != nil {
		return header{}, a.errorf(off, "its size is %q", field)
	}
	if !inside(h.name) {
		return h, nil
	}
	if h.size > a.size-h.end {
		return header{}, a.errorf(off, "is %d bytes long, and the archive ends %d bytes behind its header", h.size, a.size-h.end)
	}
	h.end += h.size
	return h, nil
}

// number reads a decimal number: digits, and nothing else.
func number(s string) (int64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 10, 64)
}

// next returns the offset of the header behind one, or of the archive's end. Headers
// stand at even offsets; the pad byte of the last member may be missing.
func (a *Archive) next(h header) int64 { return min(h.end+h.end&1, a.size) }

// findTables finds the index and the long names, which come before all members.
func (a *Archive) findTables() error {
	inside := func(string) bool { return true }
	for a.first = int64(len(magic)); a.first < a.size; {
		if a.Thin {
			inside = isTable
		}
		h, err := a.readHeader(a.first, inside)
		if err != nil {
			return err
		}
		taken, err := a.takeTable(h)
		if err != nil || !taken {
			return err
		}
		a.first = a.next(h)
	}
	return nil
}

// takeTable takes in the table that follows a header. It reports false for a member.
func (a *Archive) takeTable(h header) (bool, error) {
	contents := span{h.off + headerSize, h.end}
	switch {
	case isNames(h.name):
		if a.names.end != 0 {
			return false, a.errorf(h.off, "is a second table of long names")
		}
		a.names = contents
		return true, nil
	case isTable(h.name) && (a.index != nil || isWindows(h.name)):
		a.coff = true // "/" twice, or tables that others do not have
		return true, nil
	case isTable(h.name):
		a.index = &index{header: h.off, span: contents, wide: h.name == "/SYM64/"}
		return true, nil
	case h.off != int64(len(magic)) || a.Thin:
		return false, nil
	}
	name, at, err := a.bsdName(h)
	if err != nil || !strings.HasPrefix(name, bsdIndex) {
		return false, err
	}
	switch variant := strings.TrimSuffix(name[len(bsdIndex):], " SORTED"); variant {
	case "", "_64":
		a.index = &index{
			header: h.off, span: span{at, h.end}, bsd: true, wide: variant == "_64", sorted: strings.HasSuffix(name, " SORTED"),
		}
		return true, nil
	}
	return false, nil
}

const bsdIndex = "__.SYMDEF"

// isNames reports whether a header begins the table of long names.
func isNames(name string) bool { return name == "//" || name == "ARFILENAMES/" }

// isTable reports whether a header begins a table of the archive, and not a member.
func isTable(name string) bool {
	return name == "/" || name == "/SYM64/" || isNames(name) || isWindows(name)
}

// isWindows reports whether a table is one that only Windows has: "/<ECSYMBOLS>/".
func isWindows(name string) bool { return strings.HasPrefix(name, "/<") }
