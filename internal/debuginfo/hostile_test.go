package debuginfo_test

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/seeds"
)

// unit4 returns a unit of DWARF 4 with one entry.
func unit4(abbrevs uint32, entry ...byte) []byte {
	u := binary.LittleEndian.AppendUint32(nil, uint32(7+len(entry)))
	u = append(u, 4, 0)
	u = binary.LittleEndian.AppendUint32(u, abbrevs)
	return append(append(u, 8), entry...)
}

// cuWithLines is a compile unit that has DW_AT_stmt_list, DW_FORM_sec_offset.
var cuWithLines = []byte{1, 0x11, 0, 0x10, 0x17, 0, 0, 0}

// lineTable returns one of DWARF 4: the 4 bytes from address 0x10 on are of line 7. It
// says that it has more bytes than it has.
func lineTable(more int) []byte {
	header := []byte{1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 'a', '.', 'c', 0, 0, 0, 0, 0}
	program := []byte{0, 9, 2, 0x10, 0, 0, 0, 0, 0, 0, 0, 3, 6, 1, 2, 4, 0, 1, 1}
	b := binary.LittleEndian.AppendUint32(nil, uint32(6+len(header)+len(program)+more))
	b = binary.LittleEndian.AppendUint32(append(b, 4, 0), uint32(len(header)))
	return append(append(b, header...), program...)
}

// overlappingAbbrevs makes units whose tables of abbreviations lie in each other:
// each goes on to the end of the last, and all codes differ.
func overlappingAbbrevs(count int) (units, abbrevs []byte) {
	for i := range count {
		code := []byte{byte(i) | 0x80, byte(i>>7) | 0x80, byte(i>>14) + 1}
		units = append(units, unit4(uint32(len(abbrevs)), code...)...)
		abbrevs = append(append(abbrevs, code...), 0x34, 0, 3, 8, 0, 0)
	}
	return units, append(abbrevs, 0)
}

// Tables that lie in each other would be decoded as often as there are units.
func TestOverlappingTablesAreNotAllRead(t *testing.T) {
	const count = 1 << 15
	var tables, lineTables []byte
	stride := len(lineTable(0))
	for i := range count {
		tables = append(tables, unit4(0, binary.LittleEndian.AppendUint32([]byte{1}, uint32(stride*i))...)...)
		lineTables = append(lineTables, lineTable((count-i-1)*stride)...)
	}
	units, abbrevs := overlappingAbbrevs(count)
	for _, c := range []struct {
		name, want         string
		info, abbrev, line []byte
	}{
		{"abbreviations", "tables of them that overlap", units, abbrevs, []byte{0}},
		{"lines", "line tables overlap", tables, cuWithLines, lineTables},
	} {
		table, err := openDebug(t, map[string][]byte{".debug_info": c.info, ".debug_abbrev": c.abbrev, ".debug_line": c.line})
		if err == nil {
			err = table.Err()
		}
		expect.Error(t, err, c.want, "%s: the error", c.name)
	}
}

func compressed(kind elf.CompressionType, size uint64, data []byte) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, elf.Chdr64{Type: uint32(kind), Size: size, Addralign: 1}); err != nil {
		panic(err)
	}
	b.Write(data)
	return b.Bytes()
}

func deflate(data []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		panic(err)
	}
	w.Close()
	return b.Bytes()
}

// Memory is taken for no more than what the input can decompress to.
func TestBrokenCompressionIsAnError(t *testing.T) {
	info := unit4(0, 1, 0, 0, 0, 0)
	packed := deflate(info)
	for _, c := range []struct {
		want string
		data []byte
	}{
		{"", compressed(elf.COMPRESS_ZLIB, uint64(len(info)), packed)},
		{"a.o: debug information: .debug_info: says that 24 bytes decompress to 1099511627776", compressed(elf.COMPRESS_ZLIB, 1<<40, packed[:24])},
		{"a.o: debug information: .debug_info: ends after 16 of 17 bytes", compressed(elf.COMPRESS_ZLIB, uint64(len(info))+1, packed)},
		{"a.o: debug information: .debug_info: compressed as COMPRESS_ZSTD+1, which is not known", compressed(3, uint64(len(info)), packed)},
		{"a.o: debug information: .debug_info: 5 bytes, and no header of a compressed section", packed[:5]},
		{"a.o: debug information: .debug_info: zstd decompression error at 0: invalid magic number", compressed(elf.COMPRESS_ZSTD, uint64(len(info)), packed)},
	} {
		_, err := openDebug(t, map[string][]byte{
			"compressed:.debug_info": c.data, ".debug_abbrev": cuWithLines, ".debug_line": {0, 0, 0, 0},
		})
		expect.Equal(t, c.want, message(err), "the error")
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Strings, lists of ranges and attributes that take no byte are decoded for each entry that
// names them: as often as the file's size allows.
func TestEntriesAreBounded(t *testing.T) {
	const count, tooOften = 1 << 18, "entries or strings that are used too often"
	const unit, function = "\x01\x11\x01\x10\x17\x00\x00", "\x02\x2e\x00"
	for _, c := range []struct{ name, want, abbrev, entry, text, ranges string }{
		{"strings", tooOften, function + "\x03\x0e", "\x02\x00\x00\x00\x00", strings.Repeat("a", 1<<16) + "\x00", ""},
		{"attributes", tooOften, function + strings.Repeat("\x3f\x19", 128), "\x02", "", ""},
		{"ranges", "many that overlap", function + "\x55\x17", "\x02\x00\x00\x00\x00", "", strings.Repeat("\xff\xff\xff\xff\xff\xff\xff\xff", 1<<16) + strings.Repeat("\x00", 16)},
		{"a string without end", "a string has no end", function + "\x03\x0e", "\x02\x00\x00\x00\x00", strings.Repeat("a", 1<<17), ""},
	} {
		info := unit4(0, []byte("\x01\x00\x00\x00\x00"+strings.Repeat(c.entry, count)+"\x00")...)
		table, err := openDebug(t, map[string][]byte{
			".debug_info": info, ".debug_line": lineTable(0), ".debug_str": []byte(c.text), ".debug_ranges": []byte(c.ranges),
			".debug_abbrev": []byte(unit + c.abbrev + "\x00\x00\x00"),
		})
		if err == nil {
			table.Inlines(0, 0x10)
			err = table.Err()
		}
		expect.Error(t, err, c.want, "%s: the error", c.name)
		expect.Equal(t, "a.c:7", table.Lookup(0, 0x10), "%s: lines", c.name)
	}
}

// A function whose ranges have no end is none.
func TestFunctionsOfBrokenRanges(t *testing.T) {
	ranges := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 0x10), 0x14)
	table := expect.Value(openDebug(t, map[string][]byte{
		".debug_info": unit4(0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0), ".debug_line": lineTable(0), ".debug_ranges": ranges,
		".debug_abbrev": {1, 0x11, 1, 0x10, 0x17, 0, 0, 2, 0x2e, 0, 0x55, 0x17, 0, 0, 0},
	}))(t)
	frames := table.Inlines(0, 0x10)
	if len(frames) != 1 || frames[0].Function != "" || frames[0].Line != 7 {
		t.Errorf("got %v", frames)
	}
	expect.Equal(t, "a.o: debug information: .debug_ranges+0x0: a list of ranges without an end, or many that overlap", message(table.Err()))
}

// A list of ranges that has no end, or an unknown form, is the fault of
// one unit; the others are read.
func TestBrokenUnitsDoNotHideOthers(t *testing.T) {
	good := unit4(0, 1, 0, 0, 0, 0)
	abbrevs := []byte{1, 0x11, 0, 0x10, 0x17, 0, 0, 2, 0x11, 0, 0x55, 0x17, 0, 0, 0}
	const unknown = 15 // DW_FORM 0x7f
	abbrevs = append(abbrevs, 1, 0x11, 0, 3, 0x7f, 0, 0, 0)
	line := lineTable(0)
	for _, c := range []struct {
		want string
		bad  []byte
	}{
		{"", nil},
		{".debug_ranges+0x0: a list of ranges without an end, or many that overlap", unit4(0, 2, 0, 0, 0, 0)},
		{".debug_abbrev+0xf: abbreviations that make no sense, or tables of them that overlap: values of a form 0x7f, which is not known", unit4(unknown, 1, 0, 0, 0, 0)},
		{".debug_info+0xc: underflow", unit4(0, 1, 0, 0)},
		{".debug_info+0xc: unknown abbreviation table index", unit4(0, 9, 0, 0, 0, 0)},
		{".debug_abbrev+0x100: beyond the end at 0x17", unit4(0x100, 1)},
	} {
		table, err := openDebug(t, map[string][]byte{
			".debug_info": append(bytes.Clone(c.bad), good...), ".debug_abbrev": abbrevs, ".debug_line": line, ".debug_ranges": make([]byte, 8),
		})
		expect.Equal(t, c.want, strings.TrimPrefix(message(err), "a.o: debug information: "), "the error")
		for address, want := range map[uint64]string{0xf: "", 0x10: "a.c:7", 0x13: "a.c:7", 0x14: ""} {
			expect.Equal(t, want, table.Lookup(0, address), "%#x", address)
		}
	}
}

// Section 0 has a size where there are more sections than the header of the file can count. A
// section that is not there has none.
func TestMissingSectionOfManySections(t *testing.T) {
	data := objects.Read(t, "comdat.amd64-gcc12-g.o")
	data = bytes.Replace(data, []byte(".debug_line_str"), []byte(".hidden_line_st"), 1)
	const offset, size = 40, 32 // e_shoff, sh_size
	headers := binary.LittleEndian.Uint64(data[offset:])
	binary.LittleEndian.PutUint64(data[headers+size:], 70000)
	o := objects.Open(t, data)
	_, err := debuginfo.New(o, machines.Lookup(o.ABI()))
	expect.Error(t, err, "no .debug_line_str section")
}

// FuzzLines looks up places of files that are nearly sound: nothing panics or
// takes for ever, and what is told is told the same way twice.
func FuzzLines(f *testing.F) {
	for _, file := range objects.Committed(f, 1<<20) {
		if strings.Contains(file.Name, "-g.o") {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "a.o")
		if err != nil {
			return
		}
		table, err := debuginfo.New(o, machines.Lookup(o.ABI()))
		check(t, table, err)
		for i := range min(len(o.Sections), 20) {
			s := &o.Sections[i]
			probe(t, table, i, 0, min(s.Size, 64))
			probe(t, table, 0, s.Addr, min(s.Size, 64))
		}
		_, err = table.Prototypes(func(string) bool { return true }, math.MaxInt)
		check(t, table, err)
		_, err = table.DeclaredTypes(func(string) bool { return true }, math.MaxInt)
		check(t, table, err)
		_, err = table.Types(func(string) bool { return true })
		check(t, table, err)
		calls, err := table.Calls(func(string) bool { return true })
		check(t, table, err)
		probeCalls(calls)
		check(t, table, table.Err())
	})
}

// FuzzDWARF looks up addresses in an image that is sound but for its debug
// information.
func FuzzDWARF(f *testing.F) {
	if seeds.Few(f) {
		addDWARF(f)
	}
	f.Fuzz(func(t *testing.T, info, abbrev, line, ranges, text []byte) {
		table, err := openDebug(t, map[string][]byte{
			".debug_info": info, ".debug_abbrev": abbrev, ".debug_line": line, ".debug_rnglists": ranges, ".debug_ranges": ranges,
			".debug_str": text, ".debug_line_str": text, ".debug_str_offsets": text, ".debug_addr": ranges,
		})
		check(t, table, err)
		probe(t, table, 0, 0, 256)
		probe(t, table, 0, imageCode-16, 16)
		_, err = table.Prototypes(func(string) bool { return true }, math.MaxInt)
		check(t, table, err)
		_, err = table.DeclaredTypes(func(string) bool { return true }, math.MaxInt)
		check(t, table, err)
		_, err = table.Types(func(string) bool { return true })
		check(t, table, err)
		calls, err := table.Calls(func(string) bool { return true })
		check(t, table, err)
		probeCalls(calls)
		check(t, table, table.Err())
	})
}

// addDWARF adds the debug information of the small committed objects.
func addDWARF(f *testing.F) {
	f.Helper()
	const limit = 16 << 10
	for _, file := range objects.Committed(f, limit) {
		if !strings.Contains(file.Name, "-g.o") {
			continue
		}
		o, err := elfreloc.Open(bytes.NewReader(file.Data), int64(len(file.Data)), file.Name)
		expect.OK(f, err)
		found := make(map[string][]byte)
		for i := range o.Sections {
			if found[o.Sections[i].Name], err = o.Data(i); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(found[".debug_info"], found[".debug_abbrev"], found[".debug_line"], found[".debug_rnglists"], found[".debug_str"])
	}
}

func check(t *testing.T, table *debuginfo.Data, err error) {
	t.Helper()
	if table == nil {
		t.Fatal("no table")
	}
	if err != nil && !strings.HasPrefix(err.Error(), "a.o: debug information: ") {
		t.Fatalf("the error is %q", err)
	}
}

// probeCalls asks for the calls of each function, at a few places.
func probeCalls(calls *debuginfo.Calls) {
	for _, name := range calls.Functions() {
		calls.Numbers(name)
		for at := range uint64(64) {
			calls.Parameters(name, 0, at)
			calls.Parameters(name, 1, at)
		}
	}
}

func probe(t *testing.T, table *debuginfo.Data, section int, start, n uint64) {
	t.Helper()
	for off := start; off-start < n; off++ {
		file, line := table.Source(section, off)
		if (line == 0) != (table.Lookup(section, off) == "") {
			t.Fatalf("%d+%#x: %s:%d is looked up as %q", section, off, file, line, table.Lookup(section, off))
		}
		if frames := table.Inlines(section, off); line != 0 && (len(frames) == 0 || frames[0].Line != line || frames[0].File != file) {
			t.Fatalf("%d+%#x: %s:%d is inlined as %v", section, off, file, line, frames)
		}
	}
}

const imageCode = 1 << 16 // bytes of code at address 0

// openDebug reads an image that has nothing but code and debug sections.
func openDebug(t testing.TB, sections map[string][]byte) (*debuginfo.Data, error) {
	t.Helper()
	data := image(t, sections)
	return debuginfo.New(objects.Open(t, data), nil)
}

func image(t testing.TB, sections map[string][]byte) []byte {
	t.Helper()
	var body bytes.Buffer
	names := "\x00.text\x00"
	headers := []elf.Section64{{}, {
		Name: 1, Type: uint32(elf.SHT_NOBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Size: imageCode,
	}}
	const start = 64
	for name, data := range sections {
		s := elf.Section64{Name: uint32(len(names)), Type: uint32(elf.SHT_PROGBITS), Off: start + uint64(body.Len()), Size: uint64(len(data))}
		if rest, ok := strings.CutPrefix(name, "compressed:"); ok {
			name = rest
			s.Flags = uint64(elf.SHF_COMPRESSED)
		}
		names += name + "\x00"
		headers = append(headers, s)
		body.Write(data)
	}
	headers = append(headers, elf.Section64{
		Type: uint32(elf.SHT_STRTAB), Off: start + uint64(body.Len()), Size: uint64(len(names)),
	})
	body.WriteString(names)
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Shoff: start + uint64(body.Len()),
		Ehsize: start, Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1),
	}
	var b bytes.Buffer
	for _, part := range []any{h, body.Bytes(), headers} {
		expect.OK(t, binary.Write(&b, binary.LittleEndian, part))
	}
	return b.Bytes()
}
