package debuginfo

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
)

// Line tables are read here and not by debug/dwarf, whose LineReader no caller can bound: it
// makes as many file names as a header says it has, and joins each with its directory. One
// call of its Next takes 6 GB for 600 KB that define files in a directory with a long name.

// program is a line table (section 6.2): the rows that its program makes, and
// the files that they name.
type program struct {
	version  uint16
	wide     bool // 64-bit DWARF
	addrSize uint8

	rows  []row
	seqs  []span // sequences of rows, by address; at and n are of rows
	dirs  []file
	files []file
	dir   string // of the unit, which relative names start from
	names map[uint64]string

	minInst, lineRange, opcodeBase uint8
	lineBase                       int8
	lengths                        []byte // of standard opcodes: how many operands they have
}

// row says that the code from address on is of a line, 0 when it is of none.
type row struct {
	address    uint64
	file, line uint32
}

// file is a name in the header of a line table.
type file struct {
	name text
	dir  uint64
}

// text is a string in a line table, or the offset of one in a section.
type text struct {
	inline  []byte
	section int // 0 for a string that is inline
	offset  uint64
}

// empty stands for a line table that cannot be read.
var empty = &program{}

// program returns the line table of a unit.
func (t *Data) program(u *unit) *program {
	if !u.hasLines {
		return empty
	}
	p, ok := t.programs[u.lines]
	if !ok {
		var err error
		if p, err = t.readProgram(u); err != nil {
			t.fail(err)
			p = empty
		}
		t.programs[u.lines] = p
	}
	return p
}

func (t *Data) readProgram(u *unit) (*program, error) {
	data, err := t.sections.from(debugLine, u.lines)
	if err != nil {
		return nil, err
	}
	c := t.cursor(data)
	length, wide := c.length()
	switch {
	case c.bad() || length > uint64(len(data)-c.at):
		return nil, t.sections.fault(debugLine, u.lines, "no line table, or one that is cut off")
	case length > t.sections.left(debugLine, 2):
		return nil, t.sections.fault(debugLine, u.lines, "line tables overlap")
	}
	t.sections.list[debugLine].bytesRead += length
	c.data = data[:uint64(c.at)+length]
	p := &program{wide: wide, addrSize: u.addrSize, dir: u.dir, names: make(map[uint64]string)}
	if err := p.readHeader(&c); err != nil {
		return nil, t.sections.fault(debugLine, u.lines, "%v", err)
	}
	p.run(&c, t.isCode)
	return p, nil
}

// readHeader reads the header of a line table (section 6.2.4) and leaves c at
// its program.
func (p *program) readHeader(c *cursor) error {
	if p.version = c.u16(); p.version < 2 || p.version > 5 {
		return fmt.Errorf("a line table of version %d", p.version)
	}
	if p.version >= 5 {
		if p.addrSize = c.u8(); c.u8() != 0 || p.addrSize != 4 && p.addrSize != 8 {
			return fmt.Errorf("segmented addresses, or of %d bytes", p.addrSize)
		}
	}
	length := c.word(p.wide)
	start := uint64(c.at)
	if c.bad() || length > uint64(len(c.data))-start {
		return errors.New("the header of a line table is cut off")
	}
	body := c.data
	c.data = c.data[:start+length]
	p.minInst = c.u8()
	if p.version >= 4 {
		c.u8() // operations of an instruction, on machines that bundle them
	}
	c.u8() // default_is_stmt: all rows count
	p.lineBase, p.lineRange, p.opcodeBase = int8(c.u8()), c.u8(), c.u8()
	if c.bad() || p.lineRange == 0 || p.opcodeBase == 0 {
		return errors.New("the header of a line table makes no sense")
	}
	p.lengths = c.take(uint64(p.opcodeBase) - 1)
	if p.version >= 5 {
		p.dirs = p.readEntries(c)
		p.files = p.readEntries(c)
	} else {
		p.readOldNames(c)
	}
	if c.bad() {
		return errors.New("the file names of a line table are cut off, or of a form that is not known")
	}
	c.data, c.at = body, int(start+length)
	return nil
}

// readOldNames reads the names of DWARF 2 to 4, section 6.2.4. Directory 0 is
// that of the unit, and there is no file 0.
func (p *program) readOldNames(c *cursor) {
	p.dirs = []file{{}}
	for s := c.text(); len(s) > 0; s = c.text() {
		p.dirs = append(p.dirs, file{name: text{inline: s}})
	}
	p.files = []file{{}}
	for s := c.text(); len(s) > 0; s = c.text() {
		p.files = append(p.files, p.oldFile(c, s))
	}
}

func (p *program) oldFile(c *cursor, name []byte) file {
	f := file{name: text{inline: name}, dir: c.uleb()}
	c.skipLEB() // time
	c.skipLEB() // size
	return f
}

// The kinds of content of an entry (section 6.2.4.1).
const (
	lnctPath           = 1
	lnctDirectoryIndex = 2
)

// readEntries reads directories or files: which fields each has, then the
// fields.
func (p *program) readEntries(c *cursor) []file {
	type field struct{ content, form uint64 }
	var fields []field
	for range c.u8() {
		fields = append(fields, field{c.uleb(), c.uleb()})
	}
	n := c.uleb()
	if n > uint64(len(c.data)-c.at) { // no entry is without a byte
		c.fail(errNonsense)
		return nil
	}
	var entries []file
	for i := uint64(0); i < n && !c.bad(); i++ {
		var f file
		for _, field := range fields {
			name, number := p.value(c, field.form)
			switch field.content {
			case lnctPath:
				f.name = name
			case lnctDirectoryIndex:
				f.dir = number
			}
		}
		entries = append(entries, f)
	}
	return entries
}

// The forms that fields have (section 6.2.4.1), and those of strings by index, which no
// line table of a linked file has.
const (
	formBlock1  = 0x0a
	formBlock   = 0x09
	formData1   = 0x0b
	formData2   = 0x05
	formData4   = 0x06
	formData8   = 0x07
	formData16  = 0x1e
	formString  = 0x08
	formStrp    = 0x0e
	formUdata   = 0x0f
	formStrx    = 0x1a
	formLineStr = 0x1f
	formStrx1   = 0x25
	formStrx2   = 0x26
	formStrx3   = 0x27
	formStrx4   = 0x28
)

// value reads a string or a number. A form that is not known is a fault of c.
func (p *program) value(c *cursor, form uint64) (name text, number uint64) {
	switch form {
	case formString:
		name.inline = c.text()
	case formStrp:
		name = text{section: debugStr, offset: c.word(p.wide)}
	case formLineStr:
		name = text{section: debugLineStr, offset: c.word(p.wide)}
	case formUdata, formStrx:
		number = c.uleb()
	case formData1, formStrx1:
		number = uint64(c.u8())
	case formData2, formStrx2:
		number = uint64(c.u16())
	case formStrx3:
		c.skip(3)
	case formData4, formStrx4:
		number = uint64(c.u32())
	case formData8:
		number = c.u64()
	case formData16:
		c.skip(16)
	case formBlock1:
		c.skip(uint64(c.u8()))
	case formBlock:
		c.skip(c.uleb())
	default:
		c.fail(errNonsense)
	}
	return name, number
}

// maxPath is the longest path that is told, PATH_MAX of Linux. In hostile input
// many files may share a directory with an endless name.
const maxPath = 1 << 12

// fileName returns the path of a file, joined with its directory and that of
// the unit.
func (t *Data) fileName(p *program, i uint64) string {
	if i >= uint64(len(p.files)) {
		return ""
	}
	if name, ok := p.names[i]; ok {
		return name
	}
	name := t.join(p, p.files[i])
	if len(name) > maxPath {
		name = ""
	}
	p.names[i] = name
	return name
}

func (t *Data) join(p *program, f file) string {
	name := t.text(f.name)
	if name == "" || path.IsAbs(name) {
		return name
	}
	dir := ""
	if f.dir < uint64(len(p.dirs)) {
		dir = t.text(p.dirs[f.dir].name)
	}
	// From version 5 on directory 0 is that of the unit itself.
	if !path.IsAbs(dir) && (f.dir != 0 || p.version < 5) {
		dir = path.Join(p.dir, dir)
	}
	return path.Join(dir, name)
}

// text returns a string, "" where it cannot be read.
func (t *Data) text(s text) string {
	if s.section == 0 {
		return string(s.inline)
	}
	read, err := t.sections.text(s.section, s.offset)
	if err != nil {
		t.fail(err)
	}
	return read
}

// The opcodes of line number programs (sections 6.2.5.2 and 6.2.5.3).
const (
	lnsExtended       = 0
	lnsCopy           = 1
	lnsAdvancePC      = 2
	lnsAdvanceLine    = 3
	lnsSetFile        = 4
	lnsSetColumn      = 5
	lnsNegateStmt     = 6
	lnsSetBasicBlock  = 7
	lnsConstAddPC     = 8
	lnsFixedAdvancePC = 9
	lnsPrologueEnd    = 10
	lnsEpilogueBegin  = 11
	lnsSetISA         = 12

	lneEndSequence = 1
	lneSetAddress  = 2
	lneDefineFile  = 3
)

// machine is the state of a line number program (section 6.2.2): the registers
// that matter here, and the sequence that it is in.
type machine struct {
	*program
	row
	first  int // of this sequence, in rows
	sorted bool
	isCode func(uint64) bool
}

// run makes the rows of a program. Where the program is cut off it ends.
func (p *program) run(c *cursor, isCode func(uint64) bool) {
	const bytesOfRow = 5 // about, as compilers write programs
	p.rows = make([]row, 0, (len(c.data)-c.at)/bytesOfRow)
	m := &machine{program: p, isCode: isCode}
	m.reset()
	for c.at < len(c.data) && !c.bad() {
		op := c.u8()
		if op >= p.opcodeBase { // section 6.2.5.1
			adjusted := op - p.opcodeBase
			m.advance(uint64(adjusted / p.lineRange))
			m.line += uint32(int32(p.lineBase) + int32(adjusted%p.lineRange))
			m.emit()
			continue
		}
		m.standard(c, op)
	}
	p.rows = slices.Clip(p.rows[:m.first])
	order(p.seqs)
}

func (m *machine) reset() {
	m.row = row{file: 1, line: 1}
	m.first, m.sorted = len(m.rows), true
}

func (m *machine) advance(operation uint64) {
	m.address = mask(m.address+operation*uint64(m.minInst), m.addrSize)
}

func (m *machine) standard(c *cursor, op uint8) {
	switch op {
	case lnsExtended:
		n := c.uleb()
		m.extended(cursor{data: c.take(n), big: c.big})
	case lnsCopy:
		m.emit()
	case lnsAdvancePC:
		m.advance(c.uleb())
	case lnsAdvanceLine:
		m.line += uint32(c.sleb())
	case lnsSetFile:
		m.file = uint32(min(c.uleb(), 0xffffffff))
	case lnsConstAddPC:
		m.advance(uint64((255 - m.opcodeBase) / m.lineRange))
	case lnsFixedAdvancePC:
		m.address = mask(m.address+uint64(c.u16()), m.addrSize)
	case lnsNegateStmt, lnsSetBasicBlock, lnsPrologueEnd, lnsEpilogueBegin:
	case lnsSetColumn, lnsSetISA:
		c.skipLEB()
	default:
		for range m.lengths[op-1] {
			c.skipLEB()
		}
	}
}

func (m *machine) extended(c cursor) {
	switch c.u8() {
	case lneEndSequence:
		m.end()
	case lneSetAddress:
		m.address = mask(c.uint(len(c.data)-1), m.addrSize)
	case lneDefineFile: // until DWARF 4
		m.files = append(m.files, m.oldFile(&c, c.text()))
	}
}

// emit adds a row. Of several at one address the last counts, and one that says
// what the row before says is none.
func (m *machine) emit() {
	if n := len(m.rows); n > m.first {
		last := &m.rows[n-1]
		if m.address == last.address {
			*last = m.row
			return
		}
		if m.file == last.file && m.line == last.line && m.address > last.address {
			return
		}
		m.sorted = m.sorted && m.address > last.address
	}
	m.rows = append(m.rows, m.row)
}

// end ends a sequence. One that is not in code is of a function that the linker
// has dropped.
func (m *machine) end() {
	rows := m.rows[m.first:]
	if len(rows) > 0 && !m.sorted { // it has to be, by section 6.2.5.2
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.address, b.address) })
	}
	if len(rows) == 0 || m.address <= rows[0].address || !m.isCode(rows[0].address) {
		m.rows = m.rows[:m.first]
	} else {
		m.seqs = append(m.seqs, span{lo: rows[0].address, hi: m.address, at: int32(m.first), n: int32(len(rows))})
	}
	m.reset()
}

// lookup returns the row of an address: the last that is not behind it.
func (p *program) lookup(address uint64) (r row, ok bool) {
	ok = spansContaining(p.seqs, address, func(s *span) bool {
		rows := p.rows[s.at:][:s.n]
		r = rows[sort.Search(len(rows), func(i int) bool { return rows[i].address > address })-1] // the first is where the sequence starts
		return true
	})
	return r, ok
}
