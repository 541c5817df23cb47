package patch

import (
	"cmp"
	"debug/elf"
	"errors"
	"slices"
	"sort"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/unwind"
)

// stackChecks refuse sites whose disabled forms do not do to the stack what the code around them
// relies on.
type stackChecks struct {
	scan      *Scan
	section   int // of check
	checkSite func(arch.Text, arch.Site, arch.Kind) *arch.Refusal
	rows      map[int][]unwind.Row // by section, once they are read
	bytesRead uint64               // bytes of functions that were looked at
	maxCount  *int                 // what MaxCount found
	symbols   map[uint64]uint32    // of relocations of the section, by offset, once they are read
}

// check refuses a site whose disabled form does not suit the text around it. A site that calls a helper needs no
// check: the helper does to the stack what the stub did.
func (c *stackChecks) check(s *Scan, ref *Reference, change *arch.Change, t arch.Text) *arch.Refusal {
	checker, ok := s.Machine.(arch.CallChecker)
	if !ok || change.Site.Form == arch.Nop || change.Target == arch.TargetTest {
		return nil
	}
	c.scan = s
	if section := ref.Relocs.Target; c.checkSite == nil || c.section != section {
		c.section, c.symbols, c.checkSite = section, nil, checker.CheckCalls(frames{c, section})
	}
	return c.checkSite(t, change.Site, ref.Stub.Kind)
}

// readRows reads the unwind table, and where there is none that makes sense the symbols of
// functions.
func (c *stackChecks) readRows() {
	rows, err := unwind.Rows(c.scan.Object)
	if c.rows = rows; err == nil && len(rows) > 0 {
		return
	}
	c.rows = map[int][]unwind.Row{}
	syms := c.scan.symbols()
	for i := 1; i < syms.Len(); i++ {
		if s := syms.At(i); s.Defined() && s.Type == elf.STT_FUNC && s.Size > 0 {
			c.rows[s.Section] = append(c.rows[s.Section], unwind.Row{At: s.Value, Function: s.Value, End: s.Value + s.Size})
		}
	}
	for _, sectionRows := range c.rows {
		slices.SortStableFunc(sectionRows, func(a, b unwind.Row) int { return cmp.Compare(a.At, b.At) })
	}
}

// frames finds the stack frames of a section (arch.Frames).
type frames struct {
	*stackChecks
	section int
}

func (f frames) Frame(at uint64) (arch.Frame, bool) {
	if f.rows == nil {
		f.readRows()
	}
	rows := f.rows[f.section]
	i := sort.Search(len(rows), func(i int) bool { return rows[i].At > at })
	if i == 0 || at >= rows[i-1].End {
		return arch.Frame{}, false
	}
	row := &rows[i-1]
	frame := arch.Frame{Function: row.Function, End: row.End, Register: arch.NoRegister}
	if row.Known {
		frame.Register, frame.Distance = row.Register, row.Distance
	}
	return frame, true
}

// longestFunction is the length of the longest function that is looked at, in bytes.
const longestFunction = 64 << 10

func (f frames) Code(frame arch.Frame) []byte {
	o := f.scan.Object
	if frame.End <= frame.Function || frame.End > o.Sections[f.section].Size || frame.End-frame.Function > longestFunction {
		return nil
	}
	// Functions of a table that makes no sense may overlap.
	if f.bytesRead += frame.End - frame.Function; f.bytesRead > longestFunction+4*uint64(o.Size()) {
		return nil
	}
	code, err := o.Bytes(f.section, frame.Function, frame.End-frame.Function)
	if err != nil {
		return nil
	}
	return code
}

func (f frames) Callee(operand uint64) (symbol string, code []byte) {
	o := f.scan.Object
	if f.readSymbols() != nil {
		return "", nil
	}
	section, to := f.section, uint64(0)
	if index, ok := f.symbols[operand]; ok {
		s := f.scan.symbols().At(int(index))
		if symbol = s.Name; s.Section <= 0 || s.Type == elf.STT_SECTION {
			return symbol, nil
		}
		section, to = s.Section, s.Value
	} else {
		distance, err := o.Bytes(section, operand, 4)
		if err != nil {
			return "", nil
		}
		to = operand + 4 + uint64(int32(o.Encoding.Order.Uint32(distance)))
	}
	callee := frames{f.stackChecks, section}
	if frame, ok := callee.Frame(to); ok && frame.Function == to {
		code = callee.Code(frame)
	}
	return symbol, code
}

// readSymbols reads which symbols the relocations of the section refer to.
func (f frames) readSymbols() error {
	if f.symbols != nil {
		return nil
	}
	f.symbols = map[uint64]uint32{}
	relocs, err := f.scan.Object.RelocSections()
	if err != nil {
		return err
	}
	for _, rs := range relocs {
		if rs.Target != f.section {
			continue
		}
		err = errors.Join(err, f.scan.Object.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			f.symbols[r.Offset] = r.Sym
			return nil
		}))
	}
	return err
}

func (f frames) MaxCount(count func([]byte) int) int {
	if f.maxCount != nil {
		return *f.maxCount
	}
	maxCount := 0
	for section, rows := range f.rows {
		for _, row := range rows {
			if row.At == row.Function {
				maxCount = max(maxCount, count(frames{f.stackChecks, section}.Code(arch.Frame{Function: row.Function, End: row.End})))
			}
		}
	}
	f.maxCount = &maxCount
	return maxCount
}
