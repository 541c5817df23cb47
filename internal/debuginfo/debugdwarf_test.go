package debuginfo_test

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// Go's own reader of DWARF says the same of every byte of code: its rows, all of
// them, and the functions that were inlined there. It reads linked images only:
// of an object debug/elf relocates every section from 0.
func TestImagesAgreeWithDebugDWARF(t *testing.T) {
	files := expect.Value(filepath.Glob("testdata/*.elf"))(t)
	if len(files) == 0 {
		t.Fatal("no images")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { compareDebugDWARF(t, open(t, file)) })
	}
}

func compareDebugDWARF(t *testing.T, image *subject) {
	t.Helper()
	f := disk.OpenELF(t, image.path)
	oracles := readUnits(t, expect.Value(f.DWARF())(t))
	known, inlined := 0, 0
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		for address := s.Addr; address < s.Addr+s.Size; address++ {
			want, depth := "", 0
			for _, o := range oracles { // the first that knows a line answers
				if _, ok := o.rows[address]; ok || want == "" {
					if want, depth = o.frames(address); ok {
						break
					}
				}
			}
			expect.Equal(t, want, image.frames(place{0, address}), "%#x", address)
			if known += min(depth, 1); depth > 1 {
				inlined++
			}
		}
	}
	expect.OK(t, image.table.Err())
	if known < 300 || inlined < 50 {
		t.Errorf("debug/dwarf knows only %d addresses, %d of them of inlined functions", known, inlined)
	}
}

// oracle is what debug/dwarf says of a unit.
type oracle struct {
	rows   map[uint64]dwarf.LineEntry // of every address, its row
	inside map[uint64]int             // its innermost scope
	scopes map[int]inlinedScope       // from 1
}

// inlinedScope is a function, or a copy of one that was inlined.
type inlinedScope struct {
	name   string
	parent int    // 0 when it is not inlined
	call   string // file:line
}

func readUnits(t *testing.T, data *dwarf.Data) (all []*oracle) {
	t.Helper()
	r := data.Reader()
	for {
		unit := expect.Value(r.Next())(t)
		if unit == nil {
			return all
		}
		o := &oracle{rows: map[uint64]dwarf.LineEntry{}, inside: map[uint64]int{}, scopes: map[int]inlinedScope{}}
		files := o.readRows(t, data, unit)
		o.readScopes(t, data, r, files, 0)
		all = append(all, o)
	}
}

// readRows reads a line table. Each row holds the addresses up to the next one.
func (o *oracle) readRows(t *testing.T, data *dwarf.Data, unit *dwarf.Entry) []*dwarf.LineFile {
	t.Helper()
	r, err := data.LineReader(unit)
	if err != nil || r == nil {
		t.Fatalf("unit at %#x: line table %v, %v", unit.Offset, r, err)
	}
	last := dwarf.LineEntry{EndSequence: true}
	for {
		var row dwarf.LineEntry
		if err := r.Next(&row); errors.Is(err, io.EOF) {
			return r.Files()
		} else if err != nil {
			t.Fatal(err)
		}
		if !last.EndSequence {
			for address := last.Address; address < row.Address; address++ {
				o.rows[address] = last
			}
		}
		last = row
	}
}

// readScopes reads the children of the entry that r has returned.
func (o *oracle) readScopes(t *testing.T, data *dwarf.Data, r *dwarf.Reader, files []*dwarf.LineFile, parent int) {
	t.Helper()
	for {
		entry := expect.Value(r.Next())(t)
		if entry == nil || entry.Tag == 0 {
			return
		}
		here := parent
		if entry.Tag == dwarf.TagSubprogram || entry.Tag == dwarf.TagInlinedSubroutine {
			here = o.addScope(t, data, entry, files, parent)
		}
		if entry.Children {
			o.readScopes(t, data, r, files, here)
		}
	}
}

func (o *oracle) addScope(t *testing.T, data *dwarf.Data, entry *dwarf.Entry, files []*dwarf.LineFile, parent int) int {
	t.Helper()
	ranges := expect.Value(data.Ranges(entry))(t)
	if len(ranges) == 0 {
		return parent
	}
	s := inlinedScope{name: nameOf(t, data, entry)}
	if entry.Tag == dwarf.TagInlinedSubroutine {
		s.parent, s.call = parent, "?"
		if line, ok := entry.Val(dwarf.AttrCallLine).(int64); ok { // since DWARF 3
			s.call = fmt.Sprintf("%s:%d", path.Clean(files[entry.Val(dwarf.AttrCallFile).(int64)].Name), line)
		}
	}
	index := len(o.scopes) + 1
	o.scopes[index] = s
	for _, r := range ranges {
		for address := r[0]; address < r[1]; address++ {
			o.inside[address] = index // inner ones come later
		}
	}
	return index
}

// nameOf returns the linkage name of a function, else its name.
func nameOf(t *testing.T, data *dwarf.Data, entry *dwarf.Entry) string {
	t.Helper()
	plain := ""
	for {
		for _, a := range []dwarf.Attr{dwarf.AttrLinkageName, 0x2007} { // DW_AT_MIPS_linkage_name
			if name, ok := entry.Val(a).(string); ok {
				return name
			}
		}
		name, _ := entry.Val(dwarf.AttrName).(string)
		plain = cmp.Or(plain, name)
		origin, ok := entry.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if origin, ok = entry.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				return plain
			}
		}
		r := data.Reader()
		r.Seek(origin)
		var err error
		if entry, err = r.Next(); err != nil {
			t.Fatal(err)
		}
	}
}

// frames returns the functions of an address, in the form of subject.frames.
func (o *oracle) frames(address uint64) (text string, depth int) {
	at := "?"
	if row, ok := o.rows[address]; ok && row.Line != 0 {
		at = fmt.Sprintf("%s:%d", path.Clean(row.File.Name), row.Line)
	}
	for i := o.inside[address]; i != 0; i = o.scopes[i].parent {
		text += fmt.Sprintf("%s %s\n", cmp.Or(o.scopes[i].name, "??"), at)
		at = o.scopes[i].call
		depth++
	}
	if depth == 0 && at != "?" {
		return fmt.Sprintf("?? %s\n", at), 1
	}
	return text, depth
}
