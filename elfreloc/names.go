package elfreloc

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// NamesContain reports whether any of the texts occurs in the string table
// of the symbols. It streams the table, and reads nothing else. Where none does, nothing in the object has such a name.
func (o *Object) NamesContain(texts [][]byte) (bool, error) {
	if o.symtab == 0 {
		return false, nil
	}
	sec := int(o.Sections[o.symtab].Link)
	if sec >= len(o.Sections) {
		return false, o.SectionError(o.symtab, fmt.Errorf("string table is section %d of %d", sec, len(o.Sections)))
	}
	if sec == 0 {
		return false, nil
	}
	if err := o.checkStringTable(sec); err != nil {
		return false, err
	}
	return o.Contains(sec, texts)
}

// CheckOverlap refuses an object whose sections overlap in the file, as no
// compiler makes them.
func (o *Object) CheckOverlap() error {
	_, err := o.fileOrder()
	return err
}

// Contains reports whether any of the texts occurs in a section's bytes.
func (o *Object) Contains(sec int, texts [][]byte) (bool, error) {
	s := &o.Sections[sec]
	if !s.InFile() {
		return false, nil
	}
	found, err := StreamContains(o.r, int64(s.Offset), int64(s.Size), texts)
	if err != nil {
		return false, o.SectionError(sec, err)
	}
	return found, nil
}

// StreamContains reports whether any of the texts occurs in the n bytes at
// offset off of r, through a buffer of constant size. An error tells the offset
// where reading has ended.
func StreamContains(r io.ReaderAt, off, n int64, texts [][]byte) (bool, error) {
	overlap := 0
	for _, needle := range texts {
		overlap = max(overlap, len(needle)-1)
	}
	buf := make([]byte, min(n, int64(BlockSize+overlap)))
	for n > 0 {
		b := buf[:min(n, int64(len(buf)))]
		if got, err := r.ReadAt(b, off); got < len(b) {
			return false, fmt.Errorf("read at offset %#x: %w", off+int64(got), err)
		}
		if slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(b, text) }) {
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
