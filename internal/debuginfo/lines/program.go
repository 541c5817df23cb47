package lines

import (
	"fmt"
	"path"

	"sdtconvert/internal/debuginfo/cursor"
)

// program is a line table (section 6.2): the rows that its program makes, and
// the files that they name.
type program struct {
	params
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
	name value
	dir  uint64
}

// empty stands for a line table that cannot be read.
var empty = &program{}

// program returns the line table of a unit.
func (t *Table) program(u *unit) *program {
	if !u.hasLines {
		return empty
	}
	if u.program != nil {
		return u.program
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
	u.program = p
	return p
}

func (t *Table) readProgram(u *unit) (*program, error) {
	head, err := t.sections.rest(debugLine, u.lines, 12)
	if err != nil {
		return nil, err
	}
	c := t.cursor(head)
	length, _ := c.Length()
	if c.Bad() {
		return nil, fmt.Errorf("%s+%#x: no line table", t.sections.name(debugLine), u.lines)
	}
	if length > t.lineBudget {
		return nil, fmt.Errorf("%s+%#x: line tables overlap", t.sections.name(debugLine), u.lines)
	}
	t.lineBudget -= length
	if err := t.sections.hold(length); err != nil {
		return nil, err
	}
	data, err := t.sections.part(debugLine, u.lines, uint64(c.At)+length)
	if err != nil {
		return nil, err
	}
	p := &program{names: make(map[uint64]string)}
	if p.dir, err = t.text(u, u.dir); err != nil {
		return nil, err
	}
	c = t.cursor(data)
	if err := p.readHeader(&c, u); err != nil {
		return nil, fmt.Errorf("%s+%#x: %w", t.sections.name(debugLine), u.lines, err)
	}
	t.memory = p.run(&c, t.memory, t.isCode)
	return p, nil
}

// readHeader reads the header of a line table (section 6.2.4) and leaves c at
// its program.
func (p *program) readHeader(c *cursor.Cursor, u *unit) error {
	_, p.wide = c.Length()
	p.addrSize = u.addrSize
	if p.version = c.U16(); p.version < 2 || p.version > 5 {
		return fmt.Errorf("a line table of version %d", p.version)
	}
	if p.version >= 5 {
		if p.addrSize = c.U8(); c.U8() != 0 || p.addrSize != 4 && p.addrSize != 8 {
			return fmt.Errorf("segmented addresses, or of %d bytes", p.addrSize)
		}
	}
	length := c.Word(p.wide)
	start := uint64(c.At)
	if c.Bad() || length > uint64(len(c.Data))-start {
		return fmt.Errorf("the header of a line table is cut off")
	}
	body := c.Data
	c.Data = c.Data[:start+length]
	p.minInst = c.U8()
	if p.version >= 4 {
		c.U8() // operations of an instruction, on machines that bundle them
	}
	c.U8() // default_is_stmt: all rows count
	p.lineBase, p.lineRange, p.opcodeBase = int8(c.U8()), c.U8(), c.U8()
	if c.Bad() || p.lineRange == 0 || p.opcodeBase == 0 {
		return fmt.Errorf("the header of a line table makes no sense")
	}
	p.lengths = c.Take(uint64(p.opcodeBase) - 1)
	if p.version >= 5 {
		p.dirs = p.readEntries(c)
		p.files = p.readEntries(c)
	} else {
		p.readOldNames(c)
	}
	if c.Bad() {
		return fmt.Errorf("the file names of a line table are cut off")
	}
	c.Data, c.At = body, int(start+length)
	return nil
}

// readOldNames reads the names of DWARF 2 to 4, section 6.2.4. Directory 0 is
// that of the unit, and there is no file 0.
func (p *program) readOldNames(c *cursor.Cursor) {
	p.dirs = []file{{}}
	for s := c.Text(); len(s) > 0; s = c.Text() {
		p.dirs = append(p.dirs, file{name: value{form: formString, b: s}})
	}
	p.files = []file{{}}
	for s := c.Text(); len(s) > 0; s = c.Text() {
		p.files = append(p.files, p.oldFile(c, s))
	}
}

func (p *program) oldFile(c *cursor.Cursor, name []byte) file {
	f := file{name: value{form: formString, b: name}, dir: c.Uleb()}
	c.SkipLEB() // time
	c.SkipLEB() // size
	return f
}

// The kinds of content of an entry (section 6.2.4.1).
const (
	lnctPath           = 1
	lnctDirectoryIndex = 2
)

// readEntries reads directories or files: which fields each has, then the
// fields.
func (p *program) readEntries(c *cursor.Cursor) []file {
	var fields []attr
	for range c.U8() {
		fields = append(fields, attr{name: clamp(c.Uleb()), form: clamp(c.Uleb())})
	}
	n := c.Uleb()
	if n > uint64(len(c.Data)-c.At) { // no entry is without a byte
		c.Fail(errNonsense)
		return nil
	}
	var entries []file
	for i := uint64(0); i < n && !c.Bad(); i++ {
		var f file
		for _, at := range fields {
			v := p.value(c, at)
			switch at.name {
			case lnctPath:
				f.name = v
			case lnctDirectoryIndex:
				f.dir = v.u
			}
		}
		entries = append(entries, f)
	}
	return entries
}

// maxPath is the longest path that is told, PATH_MAX of Linux. In hostile input
// many files may share a directory with an endless name.
const maxPath = 1 << 12

// fileName returns the path of a file, joined with its directory and that of
// the unit.
func (t *Table) fileName(p *program, i uint64) string {
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
	if known, ok := t.files[name]; ok {
		name = known
	} else {
		t.files[name] = name
	}
	p.names[i] = name
	return name
}

func (t *Table) join(p *program, f file) string {
	name := t.programText(p, f.name)
	if name == "" || path.IsAbs(name) {
		return name
	}
	dir := ""
	if f.dir < uint64(len(p.dirs)) {
		dir = t.programText(p, p.dirs[f.dir].name)
	}
	// From version 5 on directory 0 is that of the unit itself.
	if !path.IsAbs(dir) && (f.dir != 0 || p.version < 5) {
		dir = path.Join(p.dir, dir)
	}
	return path.Join(dir, name)
}

// programText returns a name. Those by index are relative to a unit, and no
// line table has them.
func (t *Table) programText(p *program, v value) string {
	s, err := t.text(&unit{params: p.params}, v)
	if err != nil {
		t.fail(err)
	}
	return s
}
