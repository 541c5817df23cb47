package elfreloc

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"strings"
)

// stringTable reads a whole string table.
func (o *Object) stringTable(sec int) (string, error) {
	if sec == o.shstrndx && o.names != "" {
		return o.names, nil
	}
	if o.symbols != nil && o.symtab != 0 && sec == int(o.Sections[o.symtab].Link) {
		return o.symbols.strings, nil
	}
	if err := o.checkStringTable(sec); err != nil {
		return "", err
	}
	b, err := o.Data(sec)
	return string(b), err
}

// checkStringTable refuses a section that is no string table.
func (o *Object) checkStringTable(sec int) error {
	if t := o.Sections[sec].Type; t != elf.SHT_STRTAB {
		return o.SectionError(sec, fmt.Errorf("a %v is used as a string table", t))
	}
	return nil
}

// maxName bounds the length of a name in bytes. In a hostile table without a
// NUL, looking for the end of each of many names would take for ever.
const maxName = 1 << 20

// stringAt returns the NUL-terminated string at off of a string table.
func stringAt(table string, off uint32) (string, error) {
	if uint64(off) >= uint64(len(table)) {
		if off == 0 {
			return "", nil
		}
		return "", fmt.Errorf("string offset %#x is beyond the table's end at %#x", off, len(table))
	}
	s := table[off:]
	n := strings.IndexByte(s[:min(len(s), maxName)], 0)
	if n < 0 {
		return "", fmt.Errorf("string at offset %#x has no end", off)
	}
	return s[:n], nil
}

// stringTable is a string table that is about to change. Strings are appended;
// a symbol that gets a shorter name has it written over the old one, so that
// tables do not grow and no dead name stays behind. clang keeps the names of
// symbols and of sections in one table, and both it and GNU as let a string be
// the tail of another, so a name may be overwritten only when nothing else
// points into it.
type stringTable struct {
	data    []byte
	offsets map[string]uint32 // of what was added
	free    map[uint32]uint32 // names without other users: offset to end
}

func newStringTable(data string) *stringTable {
	const room = 512 // bytes, for what is usually added
	t := &stringTable{
		data:    append(make([]byte, 0, len(data)+room), data...),
		offsets: map[string]uint32{"": 0}, free: map[uint32]uint32{},
	}
	if len(t.data) == 0 {
		t.data = []byte{0} // gABI: a string table begins with a NUL
	}
	return t
}

// add returns the offset of s, which it appends if it has not done so before.
func (t *stringTable) add(s string) uint32 {
	off, ok := t.offsets[s]
	if !ok {
		off = uint32(len(t.data))
		t.data = append(append(t.data, s...), 0)
		t.offsets[s] = off
	}
	return off
}

// addSection adds the name of a section so that it shares its bytes with the
// name of its relocation section.
func (t *stringTable) addSection(name string) uint32 {
	if off, ok := t.offsets[name]; ok {
		return off
	}
	prefix := ".rela"
	off := t.add(prefix+name) + uint32(len(prefix))
	t.offsets[name] = off
	return off
}

// replace returns an offset for s, which takes the place of the name at off: it
// is written over it if that is free and long enough.
func (t *stringTable) replace(off uint32, s string) uint32 {
	end, free := t.free[off]
	t.erase(off)
	if _, exists := t.offsets[s]; exists || !free || uint32(len(s)) > end-off {
		return t.add(s)
	}
	copy(t.data[off:end], s)
	t.offsets[s] = off
	return off
}

// erase clears the name at off if it has no other user.
func (t *stringTable) erase(off uint32) {
	if end, ok := t.free[off]; ok {
		clear(t.data[off:end])
		delete(t.free, off)
	}
}

// freeNames finds out which names of the given symbols nothing else points into.
func (e *Edit) freeNames(t *stringTable, table int, symbols []uint32) {
	for i := range e.o.Sections {
		if s := &e.o.Sections[i]; int(s.Link) == table && i != e.o.symtab && s.Type != elf.SHT_NULL {
			return // an unknown section uses the table
		}
	}
	var starts []uint32
	for _, i := range symbols {
		// What stands behind no NUL is the tail of a longer name.
		if off := e.symbols.nameOffset(int(i)); off != 0 && t.data[off-1] == 0 {
			starts = append(starts, off)
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	ends, users := make([]uint32, len(starts)), make([]int, len(starts))
	for i, off := range starts {
		ends[i] = off + uint32(len(e.symbols.nameAt(off)))
	}
	countUser := func(off uint32) {
		i, found := slices.BinarySearch(starts, off)
		if !found {
			i--
		}
		if i >= 0 && off <= ends[i] {
			users[i]++
		}
	}
	for i := range e.symbols.Len() {
		countUser(e.symbols.nameOffset(i))
	}
	if table == e.o.shstrndx {
		for i := range e.o.Sections {
			countUser(e.o.Sections[i].nameOff)
		}
	}
	for i, off := range starts {
		if users[i] == 1 {
			t.free[off] = ends[i]
		}
	}
}

// NamesContain reports whether any of the texts occurs in the string table of the symbols. It streams
// the table, and reads nothing else. Where none does, nothing in the object has such a name.
func (o *Object) NamesContain(texts [][]byte) (bool, error) {
	return o.namesOfTableContain(o.symtab, texts)
}

// DynamicNamesContain is NamesContain for DynamicSymbols.
func (o *Object) DynamicNamesContain(texts [][]byte) (bool, error) {
	return o.namesOfTableContain(o.dynamicSymtab(), texts)
}

// namesOfTableContain looks into the names of a symbol table, which is section 0 if there is none.
func (o *Object) namesOfTableContain(symtab int, texts [][]byte) (bool, error) {
	if symtab == 0 {
		return false, nil
	}
	sec := int(o.Sections[symtab].Link)
	if sec >= len(o.Sections) {
		return false, o.SectionError(symtab, fmt.Errorf("string table is section %d of %d", sec, len(o.Sections)))
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
	if err := checkRead(r, off, n); err != nil {
		return false, err
	}
	overlap := 0
	for _, needle := range texts {
		overlap = max(overlap, len(needle)-1)
	}
	block := blocks.Get().(*[BlockSize]byte)
	defer blocks.Put(block)
	buf := block[:]
	if overlap >= len(buf)/2 {
		buf = make([]byte, BlockSize+overlap)
	}
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
