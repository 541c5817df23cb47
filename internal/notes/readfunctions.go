package notes

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"iter"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
)

// FunctionRow is what a table of functions says of a site.
type FunctionRow struct {
	Kind arch.Kind
	Site image.Addr
	// Function is the symbol of the function that the site is in, and Start where it begins. "" means that no symbol
	// named it when the object was converted.
	Function string
	Start    image.Addr
	// Record is that of the site, in a layout of Format. Recorded reports whether there is one.
	Record    image.Addr
	Format    linkerset.Format
	Recorded  bool
	Semaphore image.Ref // Null if the table names none
	IsNop     bool      // from the start, with Operands; others were calls
	Operands  string
	Types     string // of the arguments, separated by NUL; "" if none are known
}

// ReadFunctions returns the rows of all tables of functions of an object or an image, in their order. Tables are found by
// the headers of sections, or else by program headers and the note. What cannot be read of them is in faults,
// each an *elfreloc.Error; err keeps all from being read.
func ReadFunctions(o *elfreloc.Object, im image.Image) (rows []FunctionRow, faults []error, err error) {
	r := functionReader{o: o, im: im, scan: mostScanned(o)}
	ranges, err := im.Arrays(FunctionSection)
	if err != nil {
		return nil, nil, err
	}
	if len(ranges) == 0 && o.Type != elf.ET_REL {
		if ranges, err = r.loadedTables(); err != nil {
			return nil, nil, err
		}
	}
	for _, found := range ranges {
		data, err := im.Bytes(found.Start, found.Size)
		if err != nil {
			return nil, nil, err
		}
		r.readTables(found.Start, data)
	}
	return r.rows, r.faults, nil
}

// mostScanned bounds the bytes that are searched for the ends of names. Rows of a hostile table may have names that share
// their bytes.
func mostScanned(o *elfreloc.Object) int64 { return 16*o.Held() + 1<<16 }

// functionReader reads tables.
type functionReader struct {
	o      *elfreloc.Object
	im     image.Image
	scan   int64 // bytes that may still be searched for the ends of names
	rows   []FunctionRow
	faults []error
}

// mostFaults bounds the faults that are kept of an image: in a hostile one each row has some.
const mostFaults = 1000

// fail notes a fault at an address.
func (r *functionReader) fail(at image.Addr, format string, args ...any) {
	if len(r.faults) == mostFaults {
		return
	}
	r.faults = append(r.faults, &elfreloc.Error{File: r.im.Name(), Section: r.im.Place(at), Err: fmt.Errorf(format, args...)})
}

// loadedTables finds the tables of an image without section headers: a note names one, and the
// others are before it and behind it, without a gap.
func (r *functionReader) loadedTables() (ranges []image.Range, err error) {
	segments, err := r.o.Segments()
	if err != nil {
		return nil, err
	}
	left := uint64(r.o.Size()) // in a hostile file many segments may have the same bytes
	for _, s := range segments {
		if s.Type != elf.PT_NOTE || s.Filesz > left {
			continue
		}
		left -= s.Filesz
		start := image.Addr{Offset: s.Vaddr}
		data, err := r.im.Bytes(start, s.Filesz)
		if err != nil {
			continue // notes of others need not be in memory
		}
		for at, typ := range r.functionNotes(data) {
			if found := r.tablesOf(start.Add(at), typ); found.Size > 0 && len(ranges) == 0 {
				ranges = append(ranges, found)
			}
		}
	}
	return ranges, nil
}

// functionNotes returns the descriptor and the type of each note that leads to tables of functions. It looks for their owner and
// not from note to note: mold makes one segment of notes that are padded to 4 bytes and to 8.
func (r *functionReader) functionNotes(data []byte) iter.Seq2[uint64, uint32] {
	const header = 12 // the sizes of owner and descriptor, and the type
	owner := []byte(functionOwner + "\x00\x00")
	return func(yield func(uint64, uint32) bool) {
		for at := header; at+len(owner)+4 <= len(data); at += noteAlign {
			word := func(i int) uint32 { return r.o.Encoding.Order.Uint32(data[at-header+4*i:]) }
			if bytes.HasPrefix(data[at:], owner) && word(0) == uint32(len(functionOwner)+1) && word(1) >= 4 && !yield(uint64(at+len(owner)), word(2)) {
				return
			}
		}
	}
}

// tablesOf returns where the tables are that the note leads to whose descriptor is at an address.
func (r *functionReader) tablesOf(note image.Addr, typ uint32) image.Range {
	if typ != functionType {
		r.fail(note, "a note of sdtconvert of type %d, and this program reads type %d; use a later sdtconvert", typ, functionType)
		return image.Range{}
	}
	columns := byte(0)
	if r.im.Machine().Traits().LongRelative != 0 {
		columns = longDistances
	}
	first, err := r.distance(note, columns)
	if err != nil {
		r.fail(note, "%w", reason(err))
		return image.Range{}
	}
	found := r.expand(first.Addr)
	if found.Size == 0 {
		r.fail(note, "the note leads to %s, and no table of functions is there", r.im.Place(first.Addr))
	}
	return found
}

// expand returns where the tables are that lie side by side with the one at an address.
func (r *functionReader) expand(first image.Addr) image.Range {
	found, most := image.Range{Name: FunctionSection, Start: first}, uint64(r.o.Size())
	for found.Size < most {
		size := r.tableSize(first.Add(found.Size))
		if size == 0 {
			break
		}
		found.Size += size
	}
	for found.Size > 0 && found.Size < most {
		footer, err := r.im.Bytes(image.Addr{Offset: found.Start.Offset - tableFooter}, tableFooter)
		if err != nil || string(footer[4:]) != tableEnd {
			break
		}
		size := uint64(r.o.Encoding.Order.Uint32(footer))
		if before := found.Start.Add(-size); r.tableSize(before) == size {
			found.Start, found.Size = before, found.Size+size
			continue
		}
		break
	}
	return found
}

// tableSize returns the size of the table at an address, 0 for none.
func (r *functionReader) tableSize(at image.Addr) uint64 {
	header, err := r.im.Bytes(at, tableHeader)
	if err != nil || string(header[:4]) != tableBegin {
		return 0
	}
	size := uint64(r.o.Encoding.Order.Uint32(header[tableSizeAt:]))
	if size < tableHeader+tableFooter || size > uint64(r.o.Size()) {
		return 0
	}
	footer, err := r.im.Bytes(at.Add(size-tableFooter), tableFooter)
	if err != nil || r.o.Encoding.Order.Uint32(footer) != uint32(size) || string(footer[4:]) != tableEnd {
		return 0
	}
	return size
}

// readTables reads the tables that lie side by side in data, which is at an address.
func (r *functionReader) readTables(at image.Addr, data []byte) {
	for len(data) > 0 {
		size := uint64(1)
		if len(data) >= tableHeader+tableFooter && string(data[:4]) == tableBegin {
			size = uint64(r.o.Encoding.Order.Uint32(data[tableSizeAt:]))
		}
		if size < tableHeader+tableFooter || size > uint64(len(data)) || string(data[size-4:size]) != tableEnd {
			r.fail(at, "no table of functions, or one that does not end where it says")
			return
		}
		if err := r.readTable(at, data[:size]); err != nil {
			r.fail(at, "%w", err)
		}
		at, data = at.Add(size), data[size:]
	}
}

// readTable reads the rows of a table.
func (r *functionReader) readTable(at image.Addr, data []byte) error {
	version, form, kind, columns := data[4], data[5], arch.Kind(data[6]), data[7]
	if version != FunctionVersion {
		return fmt.Errorf("a table of functions of version %d, and this program reads version %d; use a later sdtconvert", version, FunctionVersion)
	}
	if int(form) > len(linkerset.Formats()) || kind >= arch.Kinds || columns&^knownColumns != 0 {
		return errors.New("a table of functions with an unknown kind of records, sites or columns")
	}
	header, size, count := uint64(tableHeader+distanceSize(columns)), uint64(rowSize(columns)), uint64(r.o.Encoding.Order.Uint32(data[tableCountAt:]))
	if count > (uint64(len(data))-header-min(tableFooter, uint64(len(data))-header))/size {
		return fmt.Errorf("a table of functions of %d bytes with %d rows", len(data), count)
	}
	t := functionTable{
		functionReader: r, at: at, data: data, text: string(data), columns: columns, names: header + count*size,
		functions: map[uint32]FunctionRow{},
	}
	first, step := FunctionRow{Kind: kind, Recorded: form != 0}, uint64(0)
	if form != 0 {
		records, err := t.distance(tableRecordsAt)
		if err != nil {
			return reason(err)
		}
		first.Record, first.Format = records.Addr, linkerset.Format(form-1)
		step = uint64(linkerset.Layout{Format: first.Format}.Size(r.o.Encoding.Word()))
	}
	for i := range count {
		row := first
		row.Record.Offset += i * step
		if err := t.readRow(&row, header+i*size); err != nil {
			r.fail(at.Add(header+i*size), "%w", err)
			continue
		}
		r.rows = append(r.rows, row)
	}
	return nil
}

// functionTable is a table that is being read.
type functionTable struct {
	*functionReader
	at        image.Addr
	data      []byte
	text      string // the same
	columns   byte
	names     uint64                 // where the names begin in data
	functions map[uint32]FunctionRow // Function and Start, by their offset in data
}

// distance reads the distance at an offset of the table.
func (t *functionTable) distance(off uint64) (image.Ref, error) {
	return t.functionReader.distance(t.at.Add(off), t.columns)
}

// distance reads the distance at an address.
func (r *functionReader) distance(at image.Addr, columns byte) (image.Ref, error) {
	if columns&longDistances == 0 || r.o.Type == elf.ET_REL { // of which the relocation tells
		return r.im.Distance(at)
	}
	data, err := r.im.Bytes(at, 8)
	if err != nil {
		return image.Ref{}, err
	}
	return image.Ref{Addr: at.Add(r.o.Encoding.Order.Uint64(data))}, nil
}

// readRow reads the row at an offset of the table.
func (t *functionTable) readRow(row *FunctionRow, off uint64) error {
	site, err := t.distance(off)
	if err != nil {
		return reason(err)
	}
	if site.Undefined || !t.im.Executable(site.Addr) {
		return fmt.Errorf("a row of a site that is not in code, at %s", t.im.Place(site.Addr))
	}
	row.Site = site.Addr
	off += uint64(distanceSize(t.columns))
	if t.columns&semaphoreColumn != 0 {
		semaphore, err := t.distance(off)
		if err != nil {
			return reason(err)
		}
		if semaphore.Addr != t.at.Add(off) { // as a field of 0 has it
			row.Semaphore = semaphore
		}
		off += uint64(distanceSize(t.columns))
	}
	if function := t.o.Encoding.Order.Uint32(t.data[off:]); function != 0 {
		f, ok := t.functions[function]
		if !ok {
			if f, err = t.function(function); err != nil {
				return err
			}
			t.functions[function] = f
		}
		if f.Start.Section != row.Site.Section || f.Start.Offset > row.Site.Offset {
			return fmt.Errorf("the function %q begins behind its site", f.Function)
		}
		row.Function, row.Start = f.Function, f.Start
	}
	off += 4
	if t.columns&operandsColumn != 0 {
		if row.Operands, err = t.optional(off, "\x00"); err != nil {
			return err
		}
		row.IsNop = t.o.Encoding.Order.Uint32(t.data[off:]) != 0
		off += 4
	}
	if t.columns&typesColumn != 0 {
		row.Types, err = t.optional(off, "\x00\x00")
	}
	return err
}

// function reads what is known of a function, at an offset of the table.
func (t *functionTable) function(off uint32) (FunctionRow, error) {
	name, err := t.name(uint64(off)+uint64(distanceSize(t.columns)), "\x00")
	if err != nil {
		return FunctionRow{}, err
	}
	start, err := t.distance(uint64(off))
	if err != nil {
		return FunctionRow{}, reason(err)
	}
	if start.Undefined || !t.im.Executable(start.Addr) {
		return FunctionRow{}, fmt.Errorf("the function %q begins outside of code, at %s", name, t.im.Place(start.Addr))
	}
	return FunctionRow{Function: name, Start: start.Addr}, nil
}

// optional reads the text that the field at an offset leads to, "" if that is 0.
func (t *functionTable) optional(field uint64, end string) (string, error) {
	off := t.o.Encoding.Order.Uint32(t.data[field:])
	if off == 0 {
		return "", nil
	}
	return t.name(uint64(off), end)
}

// name reads a text at an offset of the table, up to its end.
func (t *functionTable) name(off uint64, end string) (string, error) {
	most := uint64(len(t.data) - tableFooter)
	if off < t.names || off >= most {
		return "", fmt.Errorf("a name at %#x of a table of %#x bytes", off, len(t.data))
	}
	n := strings.Index(t.text[off:most], end)
	if n < 0 {
		return "", errors.New("a name of a table of functions has no end")
	}
	if t.scan -= int64(n); t.scan < 0 {
		return "", errors.New("names of tables of functions share their bytes; they are not read")
	}
	return t.text[off : off+uint64(n)], nil
}
