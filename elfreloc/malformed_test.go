package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// field is a place in a 64-bit little-endian file to overwrite.
type field struct {
	off  int // from the start of the header, or of a section's header
	size int
	to   uint64
}

func (f field) put(b []byte) {
	var v [8]byte
	binary.LittleEndian.PutUint64(v[:], f.to)
	copy(b[f.off:f.off+f.size], v[:])
}

// Fields of the ELF header and of section headers (gABI, chapter 4).
func class(v uint64) field   { return field{4, 1, v} }
func data(v uint64) field    { return field{5, 1, v} }
func version(v uint64) field { return field{6, 1, v} }
func shoff(v uint64) field   { return field{40, 8, v} }
func shent(v uint64) field   { return field{58, 2, v} }
func shnum(v uint64) field   { return field{60, 2, v} }
func strndx(v uint64) field  { return field{62, 2, v} }

func name(v uint64) field    { return field{0, 4, v} }
func typ(v uint64) field     { return field{4, 4, v} }
func offset(v uint64) field  { return field{24, 8, v} }
func size(v uint64) field    { return field{32, 8, v} }
func link(v uint64) field    { return field{40, 4, v} }
func info(v uint64) field    { return field{44, 4, v} }
func entsize(v uint64) field { return field{56, 8, v} }

// sound returns an object of .text, .rela.text, .group, .symtab, .strtab and
// .shstrtab, sections 1 to 6.
func sound() *image {
	m := twoAndFour()
	m.extra = []imageSection{{name: ".group", typ: elf.SHT_GROUP, data: []byte{1, 0, 0, 0, 1, 0, 0, 0}, info: 3, usesSymtab: true}}
	return m
}

const (
	relaText = 2 + iota
	group
	symtab
	strtab
	shstrtab
)

// changed overwrites fields of the header of a section, or of the file's own
// with section -1.
func changed(section int, fields ...field) []byte {
	b := sound().bytes()
	at := 0
	if section >= 0 {
		at = int(binary.LittleEndian.Uint64(b[40:])) + 64*section
	}
	for _, f := range fields {
		f.put(b[at:])
	}
	return b
}

// readEverything reads all that an edit needs.
func readEverything(b []byte) error {
	o, err := elfreloc.Open(bytes.NewReader(b), int64(len(b)), "a.o")
	if err != nil {
		return err
	}
	if _, err := o.Edit(); err != nil {
		return err
	}
	rels, err := o.RelocSections()
	if err != nil {
		return err
	}
	for _, rs := range rels {
		if err := o.EachRelocation(rs, func(int, elfreloc.Relocation) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

func TestMalformedObjectsAreExplained(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "a.o: not an ELF file"},
		{"magic alone", []byte("\x7fELF"), "a.o: ELF header is cut off after 4 bytes"},
		{"half a header", sound().bytes()[:40], "a.o: ELF header is cut off after 40 of 64 bytes"},
		{"no class", changed(-1, class(0)), "a.o: unknown ELF class 0"},
		{"class", changed(-1, class(3)), "a.o: unknown ELF class 3"},
		{"byte order", changed(-1, data(7)), "a.o: unknown ELF byte order 7"},
		{"version", changed(-1, version(2)), "a.o: unknown ELF version 2"},
		{"header size", changed(-1, shent(40)), "a.o: section headers of 40 bytes, want 64"},
		{"table beyond the end", changed(-1, shoff(1<<40)), "a.o: is truncated: its 7 section headers at offset 0x10000000000 do not fit into 1000 bytes"},
		{"table at the end of the address space", changed(-1, shoff(^uint64(0)-8)),
			"a.o: is truncated: its 7 section headers at offset 0xfffffffffffffff7 do not fit into 1000 bytes"},
		{"count without a table", changed(-1, shoff(0)), "a.o: 7 section headers at offset 0"},
		{"too many", changed(-1, shnum(60000)), "a.o: is truncated: its 60000 section headers at offset 0x228 do not fit into 1000 bytes"},
		{"one too many", changed(-1, shnum(8)), "a.o: is truncated: its 8 section headers at offset 0x228 do not fit into 1000 bytes"},
		{"none", changed(-1, shnum(0)), "a.o: 0 section headers in a file of 1000 bytes"},
		{"names' index", changed(-1, strndx(7)), "a.o: section name table is section 7 of 7"},
		{"names of the wrong type", changed(-1, strndx(1)), "a.o: section 1: a SHT_PROGBITS is used as a string table"},
		{"a name beyond the table", changed(2, name(1000)), "a.o: name of section 2: string offset 0x3e8 is beyond the table's end at 0x33"},
		{"contents beyond the end", changed(strtab, size(1<<30)), "a.o: section 5 lies at offset 0x1d8, 0x40000000 bytes, beyond the file's end at 0x3e8"},
		{"contents that overflow", changed(strtab, offset(^uint64(0)), size(8)),
			"a.o: section 5 lies at offset 0xffffffffffffffff, 0x8 bytes, beyond the file's end at 0x3e8"},
		{"two symbol tables", changed(1, typ(uint64(elf.SHT_SYMTAB))), "a.o: two symbol tables, sections 1 and 4"},
		{"overlap", changed(strtab, offset(0x40)), "a.o: .text: overlaps .strtab in the file, at offset 0x40"},
		{"overlap with the header", changed(1, offset(0x20)), "a.o: .text: overlaps the ELF header in the file, at offset 0x20"},

		// Tables.
		{"size of symbols", changed(symtab, size(25)), "a.o: .symtab: 25 bytes of symbols of 24 bytes, want a multiple of 24"},
		{"size of a symbol", changed(symtab, entsize(16)), "a.o: .symtab: 168 bytes of symbols of 16 bytes, want a multiple of 24"},
		{"no symbol", changed(symtab, size(0)), "a.o: .symtab: 0 bytes of symbols of 24 bytes, want a multiple of 24"},
		{"first global", changed(symtab, info(8)), "a.o: .symtab: first global symbol is 8 of 7"},
		{"no local symbol", changed(symtab, info(0)), "a.o: .symtab: first global symbol is 0 of 7"},
		{"a global among the locals", changed(symtab, info(4)), "a.o: .symtab: symbol 3: local and global symbols are not divided at 4"},
		{"names' index", changed(symtab, link(7)), "a.o: .symtab: string table is section 7 of 7"},
		{"names of the wrong type", changed(symtab, link(1)), "a.o: .text: a SHT_PROGBITS is used as a string table"},
		{"names cut off", changed(strtab, size(3)), "a.o: .symtab: symbol 1: string at offset 0x1 has no end"},
		{"a symbol's section", poked(symtab, 24*3+6, 99), "a.o: .symtab: symbol 3: defined in section 99 of 7"},
		{"a symbol's name", poked(symtab, 24*2, 200), "a.o: .symtab: symbol 2: string offset 0xc8 is beyond the table's end at 0x13"},
		{"size of relocations", changed(relaText, size(25)), "a.o: .rela.text: 25 bytes of relocations of 24 bytes, want a multiple of 24"},
		{"size of a relocation", changed(relaText, entsize(0)), "a.o: .rela.text: 168 bytes of relocations of 0 bytes, want a multiple of 24"},
		{"what they apply to", changed(relaText, info(7)), "a.o: .rela.text: applies to section 7 of 7"},
		{"that they apply to nothing", changed(relaText, info(0)), "a.o: .rela.text: applies to section 0 of 7"},
		{"a relocation's symbol", poked(relaText, 24*6+12, 7), "a.o: .rela.text: relocation 6: symbol 7 of 7"},
		{"a group of nothing", changed(group, size(0)), "a.o: .group: a section group of 0 bytes"},
		{"half a member", changed(group, size(6)), "a.o: .group: a section group of 6 bytes"},
		{"a group's member", poked(group, 4, 9), "a.o: .group: member is section 9 of 7"},
		{"a group of section 0", poked(group, 4, 0), "a.o: .group: member is section 0 of 7"},
	} {
		t.Run(c.name, func(t *testing.T) { wantFault(t, readEverything(c.data), c.want) })
	}
}

// poked overwrites a byte of a section's contents.
func poked(section, off int, to byte) []byte {
	b := sound().bytes()
	at := int(binary.LittleEndian.Uint64(b[40:])) + 64*section
	b[int(binary.LittleEndian.Uint64(b[at+24:]))+off] = to
	return b
}

func wantFault(t *testing.T, err error, want string) {
	t.Helper()
	expect.Equal(t, want, fmt.Sprint(err))
	if !errors.As(err, new(*elfreloc.Error)) {
		t.Errorf("%v is no *elfreloc.Error", err)
	}
}

func TestNotAnELFFileCanBeTold(t *testing.T) {
	if err := readEverything([]byte("#!/bin/sh\n")); !errors.Is(err, elfreloc.ErrNotELF) {
		t.Errorf("got %v", err)
	}
}

func TestAMemberOfTwoGroups(t *testing.T) {
	m := sound()
	m.extra = append(m.extra, m.extra[0])
	wantFault(t, readEverything(m.bytes()), "a.o: .group: section 1 is a member of group 3 too")
}

func TestProgramHeadersAreNotRewritten(t *testing.T) {
	b := sound().bytes()
	b[56] = 1 // e_phnum
	e := expect.Value(objects.Open(t, b).Edit())(t)
	_, err := e.Output()
	wantFault(t, err, "a.o: a relocatable object with program headers")
}

// Tables of a loader's relocations share bytes of the file.
func TestDynamicRelocationsOverlap(t *testing.T) {
	o := objects.Open(t, sound().bytes())
	all := elfreloc.Section{Type: elf.SHT_RELA, Flags: elf.SHF_ALLOC, Size: uint64(o.Size()) / 24 * 24}
	relocs := 0
	each := func(elfreloc.Relocation) error { relocs++; return nil }
	o.Sections = append(o.Sections, all)
	expect.OK(t, o.EachDynamic(each))
	expect.Equal(t, int(all.Size/24), relocs)
	o.Sections = append(o.Sections, all)
	expect.Error(t, o.EachDynamic(each), "overlaps other relocations in the file")
}

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
