package elfreloc

import "io"

// Table is the content of a new section whose entries are made when they are written.
type Table struct {
	Len      int  // entries, each of NewSection.Entsize bytes
	PerEntry int  // relocations of each, 0 unless NewSection.Relocs is set
	Zero     bool // Make leaves all entries zero
	// Make writes entry i into b, which is zero before, and its relocations, with symbols
	// as the Edit has them. It is called while the Output is read or written, more than
	// once and by several goroutines.
	Make func(i int, b []byte, relocs []Relocation)
}

// entries returns the entries of a table, each of so many bytes.
func (t *Table) entries(size uint64) Extent {
	r := &tableReader{table: t, entsize: int(size), size: int(size)}
	return Extent{From: r, Len: r.bytes()}
}

// relocations returns the relocations of the entries of a table, each of so many bytes.
func (s *saver) relocations(t *Table, entsize uint64, rela bool) Extent {
	l, final, size := s.o.Encoding, s.numbers.final, s.o.Encoding.relocSize(rela)
	r := &tableReader{table: t, entsize: int(entsize), size: size * t.PerEntry}
	r.encode = func(b []byte, relocs []Relocation) {
		for k, r := range relocs {
			r.Sym = final[r.Sym]
			l.putReloc(b[k*size:], r, rela)
		}
	}
	return Extent{From: r, Len: r.bytes()}
}

// tableReader reads the entries of a table, or their relocations.
type tableReader struct {
	table   *Table
	entsize int                                 // of an entry of the table, bytes
	size    int                                 // of what is read for each entry, bytes
	encode  func(b []byte, relocs []Relocation) // writes the relocations of an entry; nil to read entries
}

func (r *tableReader) bytes() int64 { return int64(r.table.Len) * int64(r.size) }

// ReadAt implements io.ReaderAt.
func (r *tableReader) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 || off >= r.bytes() {
		return 0, io.EOF
	}
	if left := r.bytes() - off; int64(len(b)) > left {
		b, err = b[:left], io.EOF
	}
	if r.encode == nil && r.table.Zero {
		clear(b)
		return len(b), err
	}
	entry, relocs := make([]byte, r.entsize), make([]Relocation, r.table.PerEntry)
	var made []byte // what is read for an entry
	if r.encode != nil {
		made = make([]byte, r.size)
	}
	i, skip := int(off/int64(r.size)), int(off%int64(r.size))
	for ; n < len(b); i++ {
		clear(entry)
		r.table.Make(i, entry, relocs)
		if r.encode == nil {
			made = entry
		} else {
			r.encode(made, relocs)
		}
		n += copy(b[n:], made[skip:])
		skip = 0
	}
	return n, err
}
