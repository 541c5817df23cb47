package elfreloc

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// NamesContain reports whether any of the needles occurs in the string table
// of the symbols. Unless the symbols were read, it streams the table, and reads nothing
// else. Where none does, nothing in the object has such a name.
func (o *Object) NamesContain(needles [][]byte) (bool, error) {
	if o.symtab == 0 {
		return false, nil
	}
	sec := int(o.Sections[o.symtab].Link)
	if sec >= len(o.Sections) {
		return false, o.SectionError(o.symtab, fmt.Errorf("string table is section %d of %d", sec, len(o.Sections)))
	}
	table := ""
	switch {
	case o.symbols != nil:
		table = o.symbols.strings
	case sec == o.shstrndx:
		table = o.names
	}
	if table == "" {
		return o.Contains(sec, needles)
	}
	return slices.ContainsFunc(needles, func(n []byte) bool { return strings.Contains(table, string(n)) }), nil
}

// CheckOverlap refuses an object whose sections overlap in the file, as no
// compiler makes them.
func (o *Object) CheckOverlap() error {
	_, err := o.fileOrder()
	return err
}

// Contains reports whether any of the needles occurs in a section's bytes.
func (o *Object) Contains(sec int, needles [][]byte) (bool, error) {
	s := &o.Sections[sec]
	if !s.InFile() {
		return false, nil
	}
	if m, ok := o.r.(Memory); ok {
		if b := m.Slice(int64(s.Offset), int64(s.Size)); b != nil {
			return containsAny(b, needles), nil
		}
	}
	found, err := StreamContains(o.r, int64(s.Offset), int64(s.Size), needles)
	if err != nil {
		return false, o.SectionError(sec, err)
	}
	return found, nil
}

// StreamContains reports whether any of the needles occurs in the n bytes at
// offset off of r, through a buffer of constant size. An error tells the offset
// where reading has ended.
func StreamContains(r io.ReaderAt, off, n int64, needles [][]byte) (bool, error) {
	overlap := 0
	for _, needle := range needles {
		overlap = max(overlap, len(needle)-1)
	}
	buf := make([]byte, min(n, int64(BlockSize+overlap)))
	for n > 0 {
		b := buf[:min(n, int64(len(buf)))]
		if got, err := r.ReadAt(b, off); got < len(b) {
			return false, fmt.Errorf("read at offset %#x: %w", off+int64(got), err)
		}
		if containsAny(b, needles) {
			return true, nil
		}
		if int64(len(b)) == n {
			return false, nil
		}
		step := int64(len(b) - overlap)
		off, n = off+step, n-step
	}
	return false, nil
}

// containsAny searches once for what all needles begin with: those of stubs have that in
// common, and few names have it.
func containsAny(b []byte, needles [][]byte) bool {
	begin := commonPrefix(needles)
	if len(begin) < 4 {
		return slices.ContainsFunc(needles, func(needle []byte) bool { return bytes.Contains(b, needle) })
	}
	for at := bytes.Index(b, begin); at >= 0; at = bytes.Index(b, begin) {
		b = b[at:]
		if slices.ContainsFunc(needles, func(needle []byte) bool { return bytes.HasPrefix(b, needle) }) {
			return true
		}
		b = b[1:]
	}
	return false
}

// commonPrefix returns what all strings begin with.
func commonPrefix(strings [][]byte) []byte {
	if len(strings) == 0 {
		return nil
	}
	common := strings[0]
	for _, s := range strings[1:] {
		n := 0
		for n < min(len(s), len(common)) && s[n] == common[n] {
			n++
		}
		common = common[:n]
	}
	return common
}
