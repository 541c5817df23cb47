package lines

import (
	"fmt"

	"sdtconvert/internal/debuginfo/cursor"
)

// The tags and attributes that are looked at (sections 7.5.3 and 7.5.4).
const (
	tagCompileUnit       = 0x11
	tagInlinedSubroutine = 0x1d
	tagSubprogram        = 0x2e
	tagPartialUnit       = 0x3c
	tagSkeletonUnit      = 0x4a

	atName           = 0x03
	atStmtList       = 0x10
	atLowPC          = 0x11
	atHighPC         = 0x12
	atCompDir        = 0x1b
	atAbstractOrigin = 0x31
	atSpecification  = 0x47
	atRanges         = 0x55
	atCallFile       = 0x58
	atCallLine       = 0x59
	atLinkageName    = 0x6e
	atStrOffsetsBase = 0x72
	atAddrBase       = 0x73
	atRnglistsBase   = 0x74
	atMIPSLinkage    = 0x2007
	atGNUAddrBase    = 0x2133
)

// abbrev is the shape of an entry (section 7.5.3).
type abbrev struct {
	tag      uint32
	children bool
	size     int32 // bytes of the attributes of an entry, -1 when they vary
	attrs    []attr
}

type attr struct {
	name     uint32
	form     uint32
	implicit int64 // of DW_FORM_implicit_const
}

// params are what the size of a value depends on besides its form.
type params struct {
	version  uint16
	wide     bool // 64-bit DWARF
	addrSize uint8
}

type abbrevKey struct {
	off uint64
	params
}

// abbrevTable holds the abbreviations of a unit. Compilers number them from 1.
type abbrevTable struct {
	list  []abbrev
	other map[uint64]int // by code, of those that are numbered otherwise
}

func (a *abbrevTable) get(code uint64) *abbrev {
	if code-1 < uint64(len(a.list)) && a.other == nil {
		return &a.list[code-1]
	}
	if i, ok := a.other[code]; ok {
		return &a.list[i]
	}
	return nil
}

// abbrevTable reads the table at an offset of .debug_abbrev, once.
func (t *Table) abbrevTable(off uint64, p params) (*abbrevTable, error) {
	key := abbrevKey{off, p}
	if table, ok := t.abbrevs[key]; ok {
		return table, nil
	}
	data, err := t.sections.all(debugAbbrev)
	if err != nil {
		return nil, err
	}
	if off > uint64(len(data)) {
		return nil, fmt.Errorf("%s+%#x: beyond the end at %#x", t.sections.name(debugAbbrev), off, len(data))
	}
	c := cursor.Cursor{Data: data[off:]}
	table := parseAbbrevs(&c, p, t.abbrevBudget)
	t.abbrevBudget -= uint64(c.At)
	if c.Bad() {
		return nil, fmt.Errorf("%s+%#x: abbreviations that make no sense, or tables of them that overlap", t.sections.name(debugAbbrev), off)
	}
	t.abbrevs[key] = table
	return table, nil
}

// maxAttrs bounds how many attributes an entry has; some take no byte of it.
const maxAttrs = 128

func parseAbbrevs(c *cursor.Cursor, p params, budget uint64) *abbrevTable {
	table := &abbrevTable{}
	c.Data = c.Data[:min(uint64(len(c.Data)), budget)]
	var attrs []attr // of all abbreviations
	for code := c.Uleb(); code != 0 && !c.Bad(); code = c.Uleb() {
		a := abbrev{tag: clamp(c.Uleb()), children: c.U8() != 0}
		first := len(attrs)
		for !c.Bad() {
			at := attr{name: clamp(c.Uleb()), form: clamp(c.Uleb())}
			if at.form == formImplicitConst {
				at.implicit = c.Sleb()
			}
			if at.name == 0 && at.form == 0 {
				break
			}
			attrs = append(attrs, at)
			if len(attrs)-first > maxAttrs {
				c.Fail(errNonsense)
			}
			if n := p.formSize(at.form); n < 0 || a.size < 0 {
				a.size = -1
			} else if a.size += int32(n); a.size > 1<<30 {
				c.Fail(errNonsense)
			}
		}
		a.attrs = attrs[first:len(attrs):len(attrs)]
		table.number(code)
		table.list = append(table.list, a)
	}
	return table
}

// number notes the code of the abbreviation that comes next.
func (a *abbrevTable) number(code uint64) {
	n := len(a.list)
	if a.other == nil {
		if code == uint64(n)+1 {
			return
		}
		a.other = make(map[uint64]int)
		for i := range n {
			a.other[uint64(i)+1] = i
		}
	}
	if _, twice := a.other[code]; !twice {
		a.other[code] = n
	}
}

// clamp makes what no tag, attribute or form can be 0xffffffff.
func clamp(v uint64) uint32 { return uint32(min(v, 0xffffffff)) }
