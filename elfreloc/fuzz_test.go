package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"runtime"
	"slices"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// seedLimit keeps the inputs of fuzzing small, and so its rate high.
const seedLimit = 16 << 10

// FuzzRead reads all that the package reads of an object, and adds to it. The
// file's content may lead to an error, never to a panic, to an allocation out
// of proportion, or to an output that does not read as it was meant.
func FuzzRead(f *testing.F) {
	for _, file := range append(objects.Committed(f, seedLimit), objects.Foreign(f, seedLimit)...) {
		f.Add(file.Data)
	}
	for _, m := range everyImage() {
		f.Add(m.bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		extended := readAndExtend(t, data)
		runtime.ReadMemStats(&after)
		used, limit := after.TotalAlloc-before.TotalAlloc, uint64(8<<20+100*len(data))
		if used > limit {
			t.Errorf("%d bytes are allocated for a file of %d bytes, want at most %d", used, len(data), limit)
		}
		if extended != nil {
			extended.check(t, data)
		}
	})
}

// extended is an object and its bytes after an edit.
type extended struct {
	object  *elfreloc.Object
	result  []byte
	changed bool
}

// readAndExtend returns nil when something is wrong with the object.
func readAndExtend(t *testing.T, data []byte) *extended {
	o, ok := readAll(t, data)
	if !ok {
		return nil
	}
	e := expect.Value(o.Edit())(t, "the parts can be read, and an edit fails")
	addRecords(t, e)
	out, err := e.Output()
	if (out != nil) == (err != nil) {
		t.Fatalf("Output returns %v and error %v", out, err)
	}
	if err != nil {
		wantLocated(t, err)
		return nil
	}
	result, err := objects.Assemble(out, data)
	if err != nil {
		wantLocated(t, err)
		return nil
	}
	return &extended{o, result, e.Changed()}
}

// readAll reads every part of an object, and reports whether all are sound.
func readAll(t *testing.T, data []byte) (*elfreloc.Object, bool) {
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "fuzz.o")
	if err != nil {
		wantLocated(t, err)
		return nil, false
	}
	syms, err := o.Symbols()
	if (syms != nil) == (err != nil) {
		t.Fatalf("Symbols returns %v and error %v", syms, err)
	}
	if err != nil {
		wantLocated(t, err)
		return nil, false
	}
	for i := range syms.Len() {
		if s := syms.At(i); s.Name != syms.Name(i) || o.Type == elf.ET_REL && s.Section >= len(o.Sections) {
			t.Fatalf("symbol %d is %+v", i, s)
		}
	}
	for i := range o.Sections {
		if b, err := o.Data(i); err != nil {
			t.Fatalf("section %d: %v", i, err)
		} else if len(b) > len(data) {
			t.Fatalf("section %d has %d bytes in a file of %d", i, len(b), len(data))
		}
	}
	_, err = o.Groups()
	if err == nil {
		err = readRelocations(o)
	}
	if err != nil {
		wantLocated(t, err)
		return nil, false
	}
	return o, true
}

func readRelocations(o *elfreloc.Object) error {
	rels, err := o.RelocSections()
	if err != nil {
		return err
	}
	for _, rs := range rels {
		count := 0
		err := o.EachRelocation(rs, func(i int, r elfreloc.Relocation) error {
			if i != count {
				return errors.New("relocations out of order")
			}
			count++
			return nil
		})
		if err == nil && count != rs.Len {
			err = errors.New("relocations are missing")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wantLocated demands an error that names the file.
func wantLocated(t *testing.T, err error) {
	t.Helper()
	var e *elfreloc.Error
	if !errors.As(err, &e) || e.File != "fuzz.o" || e.Err == nil {
		t.Fatalf("got %#v, want an error of the file", err)
	}
}

// addRecords adds what a conversion adds: for each section of code its symbol,
// and a section with two relocations against it.
func addRecords(t *testing.T, e *elfreloc.Edit) {
	o := e.Object()
	if syms, err := o.Symbols(); err != nil || syms.Len() == 0 {
		return // symbols need a symbol table
	}
	for i := range o.Sections {
		if i == 0 || !o.Sections[i].Executable() {
			continue
		}
		sym := e.SectionSymbol(i)
		records := e.AddSection(elfreloc.NewSection{
			Name: "records", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 8, Entsize: 8,
			Data: make([]byte, 16), Relocs: true, Rela: true, GroupOf: i,
		})
		for off := range uint64(2) {
			expect.OK(t, e.AddRelocation(records, elfreloc.Relocation{Offset: 8 * off, Sym: sym, Type: 1}))
		}
	}
}

// check compares an object with its extended copy.
func (x *extended) check(t *testing.T, data []byte) {
	o, result := x.object, x.result
	n, err := elfreloc.Open(bytes.NewReader(result), int64(len(result)), "fuzz.o")
	if err != nil {
		t.Fatalf("the output cannot be read: %v", err)
	}
	was := expect.Value(o.Symbols())(t)
	now := expect.Value(n.Symbols())(t, "the output's symbols")
	expect.OK(t, readRelocations(n), "the output's relocations")
	if now.Len() < was.Len() || len(n.Sections) < len(o.Sections) {
		t.Fatalf("%d symbols and %d sections, want at least %d and %d", now.Len(), len(n.Sections), was.Len(), len(o.Sections))
	}
	for i := range o.Sections {
		if i == 0 {
			continue
		}
		was, now := o.Sections[i], n.Sections[i]
		if was.Name != now.Name || was.Type != now.Type || was.Flags != now.Flags || !x.changed && was.Size != now.Size {
			t.Fatalf("section %d was %+v and is %+v", i, was, now)
		}
		if was.Type == elf.SHT_PROGBITS {
			wantSameData(t, o, n, i)
		}
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil || slices.ContainsFunc(f.Sections, func(s *elf.Section) bool { return s.Flags&elf.SHF_COMPRESSED != 0 }) {
		return // debug/elf is stricter, and reads contents that are compressed
	}
	expect.Value(elf.NewFile(bytes.NewReader(result)))(t, "debug/elf reads the input and not the output")
}

func wantSameData(t *testing.T, o, n *elfreloc.Object, sec int) {
	was := expect.Value(o.Data(sec))(t)
	now := expect.Value(n.Data(sec))(t)
	if !bytes.Equal(was, now) {
		t.Fatalf("the contents of section %d have changed", sec)
	}
}
