package lines

import (
	"cmp"
	"slices"
	"sort"

	"sdtconvert/internal/debuginfo/cursor"
)

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
func (p *program) run(c *cursor.Cursor, isCode func(uint64) bool) {
	m := &machine{program: p, isCode: isCode}
	m.reset()
	for c.At < len(c.Data) && !c.Bad() {
		op := c.U8()
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

func (m *machine) standard(c *cursor.Cursor, op uint8) {
	switch op {
	case lnsExtended:
		n := c.Uleb()
		m.extended(cursor.Cursor{Data: c.Take(n), Big: c.Big})
	case lnsCopy:
		m.emit()
	case lnsAdvancePC:
		m.advance(c.Uleb())
	case lnsAdvanceLine:
		m.line += uint32(c.Sleb())
	case lnsSetFile:
		m.file = uint32(min(c.Uleb(), 0xffffffff))
	case lnsConstAddPC:
		m.advance(uint64((255 - m.opcodeBase) / m.lineRange))
	case lnsFixedAdvancePC:
		m.address = mask(m.address+uint64(c.U16()), m.addrSize)
	case lnsNegateStmt, lnsSetBasicBlock, lnsPrologueEnd, lnsEpilogueBegin:
	case lnsSetColumn, lnsSetISA:
		c.SkipLEB()
	default:
		for range m.lengths[op-1] {
			c.SkipLEB()
		}
	}
}

func (m *machine) extended(c cursor.Cursor) {
	switch c.U8() {
	case lneEndSequence:
		m.end()
	case lneSetAddress:
		m.address = mask(c.Uint(len(c.Data)-1), m.addrSize)
	case lneDefineFile: // until DWARF 4
		m.files = append(m.files, m.oldFile(&c, c.Text()))
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
