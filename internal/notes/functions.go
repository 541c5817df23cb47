package notes

// A table of functions says, in the memory of a program, which function each site is in, so that the
// names outlive symbols and section headers. docs/records.md has its format.
//
// Each text section has a table of its own, in its group and kept alive by the text. Linkers put the tables
// of an image side by side into one section. No symbol bounds it: GNU ld and gold keep all that is
// between __start_<section> and __stop_<section> as soon as something refers to these, and so code
// that is not used. Instead each table begins and ends with its size, and a note, which the program headers lead to,
// says where one of them is: an empty one, which the note keeps alive and no code does.

import (
	"debug/elf"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// FunctionSection is the name of the sections of tables of functions. It is no identifier of C, because
// linkers keep sections of such names.
const FunctionSection = ".sdt_functions"

// FunctionNoteSection holds the note that leads to the tables.
const FunctionNoteSection = ".note.sdtconvert"

const (
	functionOwner = "sdtconvert"
	functionType  = 1
)

// FunctionSymbol is the symbol of the note, of which a link keeps one.
const FunctionSymbol = "_.sdt_functions"

// FunctionVersion is the version of the format of tables.
const FunctionVersion = 1

// What a table begins and ends with.
const (
	tableBegin = "sdtf"
	tableEnd   = "ftds"
)

// The sizes of what stands before the rows of a table and behind its names, in bytes. The header has a distance besides.
const (
	tableHeader = 16
	tableFooter = 8
)

// Where the fields of a table's header are, behind tableBegin, four bytes that describe the table.
const (
	tableSizeAt    = 8           // of the table with its footer, bytes
	tableCountAt   = 12          // of rows
	tableRecordsAt = tableHeader // the distance of the first record
)

// The columns that a table may have besides the site and its function, and whether its distances have 8 bytes and not 4.
const (
	semaphoreColumn = 1 << iota
	operandsColumn
	typesColumn
	longDistances = 0x80
	knownColumns  = semaphoreColumn | operandsColumn | typesColumn | longDistances
)

// distanceSize returns the size of a distance in bytes.
func distanceSize(columns byte) int {
	if columns&longDistances != 0 {
		return 8
	}
	return 4
}

// rowSize returns the size of a row in bytes.
func rowSize(columns byte) int {
	size := distanceSize(columns) + 4
	if columns&semaphoreColumn != 0 {
		size += distanceSize(columns)
	}
	for _, column := range []byte{operandsColumn, typesColumn} {
		if columns&column != 0 {
			size += 4
		}
	}
	return size
}

// SiteFunction is a row of a table of functions.
type SiteFunction struct {
	Site linkerset.SymbolRef
	// Function is the symbol of the function that the site is in, and Start where it begins. "" means that it is not known.
	Function  string
	Start     linkerset.SymbolRef
	Semaphore linkerset.SymbolRef // the zero SymbolRef for none
	// IsNop reports that the site is a NOP from the start, whose arguments are where Operands say, "" for nowhere that is
	// known. Those of others are where a call has them.
	IsNop    bool
	Operands string
	Types    []string // of the arguments, as the probe's definition has them; nil if it is not known
}

// FunctionTable describes a table.
type FunctionTable struct {
	Kind arch.Kind
	// Records is the first of the records of the sites, which follow each other as the rows do; the zero SymbolRef for no
	// records. They are of Format.
	Records linkerset.SymbolRef
	Format  linkerset.Format
}

// recordForm returns the byte that says what records there are: 0 for none, else one more than their format.
func (t *FunctionTable) recordForm() byte {
	if t.Records == (linkerset.SymbolRef{}) {
		return 0
	}
	return byte(t.Format) + 1
}

// AddFunctions adds a table of the sites of text section text. rela tells that addends are to be in
// relocations, and not in the fields. It returns what text has to refer to in order to keep the table alive.
func (w *Writer) AddFunctions(text int, rela bool, table FunctionTable, rows []SiteFunction) (anchors []linkerset.SymbolRef, err error) {
	note, err := w.noteSymbol()
	if err != nil {
		return nil, err
	}
	section, err := w.addTable(table, rela, text, rows)
	return []linkerset.SymbolRef{{Sym: linkerset.SectionMark(w.edit, w.m, section)}, {Sym: note}}, err
}

// addTable adds a section that holds a table, in the group of a section.
func (w *Writer) addTable(table FunctionTable, rela bool, groupOf int, rows []SiteFunction) (section int, err error) {
	b := newTableBuilder(w.edit.Object().Encoding, w.columns(rows), &table, rows)
	section = w.edit.AddSection(elfreloc.NewSection{
		Name: FunctionSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 4, Data: b.data,
		Relocs: len(b.fields) > 0, RelocCount: len(b.fields), Rela: rela, GroupOf: groupOf,
	})
	for _, f := range b.fields {
		if !rela {
			b.layout.Order.PutUint32(b.data[f.offset:], uint32(f.to.Addend))
		}
		if err := w.addDistance(section, f); err != nil {
			return 0, err
		}
	}
	return section, nil
}

// addDistance adds the relocations of a distance.
func (w *Writer) addDistance(section int, f noteField) error {
	if long := w.m.Traits().LongRelative; long != 0 {
		return w.edit.AddRelocation(section, elfreloc.Relocation{Offset: f.offset, Type: long, Sym: f.to.Sym, Addend: f.to.Addend})
	}
	return linkerset.AddDistance(w.edit, w.m, section, f.offset, f.to)
}

// columns returns the columns of a table with rows.
func (w *Writer) columns(rows []SiteFunction) (columns byte) {
	if w.m.Traits().LongRelative != 0 {
		columns = longDistances
	}
	for i := range rows {
		if rows[i].Semaphore != (linkerset.SymbolRef{}) {
			columns |= semaphoreColumn
		}
		if rows[i].IsNop {
			columns |= operandsColumn
		}
		if len(rows[i].Types) > 0 {
			columns |= typesColumn
		}
	}
	return columns
}

// noteSymbol finds or makes the symbol of the note that leads to the tables, of which a link keeps one,
// with the empty table.
func (w *Writer) noteSymbol() (sym uint32, err error) {
	if w.functionNote != 0 {
		return w.functionNote, nil
	}
	if w.functionNote, err = findGlobal(w.edit, FunctionSymbol); err != nil || w.functionNote != 0 {
		return w.functionNote, err
	}
	rela := w.m.Traits().Rela
	note, field := &sectionNotes{layout: w.edit.Object().Encoding, rela: rela}, uint64(0)
	note.add(functionOwner, functionType, func(n *sectionNotes) {
		field = uint64(len(n.data))
		n.data = append(n.data, make([]byte, distanceSize(w.columns(nil)))...)
	})
	// A local signature would lose its name in gold's -r, and lld takes groups of nameless signatures for one.
	symbol := elfreloc.Symbol{Name: FunctionSymbol, Bind: elf.STB_WEAK, Type: elf.STT_OBJECT, Other: byte(elf.STV_HIDDEN), Size: uint64(len(note.data))}
	w.functionNote = w.edit.AddSymbol(symbol)
	holder := w.edit.AddSection(elfreloc.NewSection{
		Name: FunctionNoteSection, Type: elf.SHT_NOTE, Flags: elf.SHF_ALLOC, Align: noteAlign, Data: note.data,
		Relocs: true, RelocCount: 1, Rela: rela, GroupOf: w.edit.AddGroup(w.functionNote),
	})
	symbol.Section = holder
	w.edit.SetSymbol(w.functionNote, symbol)
	table, err := w.addTable(FunctionTable{}, rela, holder, nil)
	if err != nil {
		return 0, err
	}
	return w.functionNote, w.addDistance(holder, noteField{field, linkerset.SymbolRef{Sym: w.edit.SectionSymbol(table)}})
}

// tableBuilder makes the bytes of a table.
type tableBuilder struct {
	layout  elfreloc.Encoding
	columns byte
	data    []byte
	fields  []noteField                    // distances from themselves
	texts   map[string]uint32              // where the texts of operands and types are
	starts  map[linkerset.SymbolRef]uint32 // where functions are described
}

func newTableBuilder(encoding elfreloc.Encoding, columns byte, table *FunctionTable, rows []SiteFunction) *tableBuilder {
	header, size := tableHeader+distanceSize(columns), rowSize(columns)
	b := &tableBuilder{
		layout: encoding, columns: columns, data: make([]byte, header+len(rows)*size, header+len(rows)*(size+32)+tableFooter),
		texts: map[string]uint32{}, starts: map[linkerset.SymbolRef]uint32{},
	}
	copy(b.data, tableBegin)
	copy(b.data[4:], []byte{FunctionVersion, table.recordForm(), byte(table.Kind), columns})
	if table.recordForm() != 0 {
		b.fields = append(b.fields, noteField{tableRecordsAt, table.Records})
	}
	for i := range rows {
		b.addRow(header+i*size, &rows[i])
	}
	b.pad()
	total := uint32(len(b.data) + tableFooter)
	b.layout.Order.PutUint32(b.data[tableSizeAt:], total)
	b.layout.Order.PutUint32(b.data[tableCountAt:], uint32(len(rows)))
	b.data = append(append(b.data, b.data[tableSizeAt:tableSizeAt+4]...), tableEnd...)
	return b
}

// addRow fills the row at an offset, and adds the names that it is the first to have.
func (b *tableBuilder) addRow(at int, row *SiteFunction) {
	b.fields = append(b.fields, noteField{uint64(at), row.Site})
	at += distanceSize(b.columns)
	if b.columns&semaphoreColumn != 0 {
		if row.Semaphore != (linkerset.SymbolRef{}) {
			b.fields = append(b.fields, noteField{uint64(at), row.Semaphore})
		}
		at += distanceSize(b.columns)
	}
	if row.Function != "" {
		function := b.function(row) // which may move the data
		b.layout.Order.PutUint32(b.data[at:], function)
	}
	at += 4
	if b.columns&operandsColumn != 0 {
		if row.IsNop {
			b.putText(at, row.Operands)
		}
		at += 4
	}
	if b.columns&typesColumn != 0 && len(row.Types) > 0 {
		b.putText(at, strings.Join(row.Types, "\x00")+"\x00") // an empty string ends the list
	}
}

// putText makes the field at an offset lead to a text and a NUL.
func (b *tableBuilder) putText(at int, text string) {
	offset, ok := b.texts[text]
	if !ok {
		offset = uint32(len(b.data))
		b.texts[text], b.data = offset, append(append(b.data, text...), 0)
	}
	b.layout.Order.PutUint32(b.data[at:], offset)
}

// function returns where the function of a row is described: the distance of its start, and its name.
func (b *tableBuilder) function(row *SiteFunction) uint32 {
	if offset, ok := b.starts[row.Start]; ok {
		return offset
	}
	b.pad()
	offset := uint32(len(b.data))
	b.starts[row.Start] = offset
	b.fields = append(b.fields, noteField{uint64(offset), row.Start})
	b.data = append(append(append(b.data, make([]byte, distanceSize(b.columns))...), row.Function...), 0)
	return offset
}

func (b *tableBuilder) pad() {
	b.data = append(b.data, make([]byte, -len(b.data)&3)...)
}
