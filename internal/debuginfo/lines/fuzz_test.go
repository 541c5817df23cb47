package lines_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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
		table, err := lines.New(o, machines.Lookup(o.ABI()))
		check(t, table, err)
		for i := range min(len(o.Sections), 20) {
			s := &o.Sections[i]
			probe(t, table, i, 0, min(s.Size, 64))
			probe(t, table, 0, s.Addr, min(s.Size, 64))
		}
		_, err = table.Prototypes(func(string) bool { return true })
		check(t, table, err)
		check(t, table, table.Err())
	})
}

// FuzzDWARF looks up addresses in an image that is sound but for its debug
// information.
func FuzzDWARF(f *testing.F) {
	for _, file := range objects.Committed(f, 1<<20) {
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
	f.Fuzz(func(t *testing.T, info, abbrev, line, ranges, text []byte) {
		table, err := openDebug(t, map[string][]byte{
			".debug_info": info, ".debug_abbrev": abbrev, ".debug_line": line, ".debug_rnglists": ranges, ".debug_ranges": ranges,
			".debug_str": text, ".debug_line_str": text, ".debug_str_offsets": text, ".debug_addr": ranges,
		})
		check(t, table, err)
		probe(t, table, 0, 0, 256)
		probe(t, table, 0, imageCode-16, 16)
		_, err = table.Prototypes(func(string) bool { return true })
		check(t, table, err)
		check(t, table, table.Err())
	})
}

func check(t *testing.T, table *lines.Table, err error) {
	t.Helper()
	if table == nil {
		t.Fatal("no table")
	}
	if err != nil && !strings.HasPrefix(err.Error(), "a.o: debug information: ") {
		t.Fatalf("the error is %q", err)
	}
}

func probe(t *testing.T, table *lines.Table, section int, start, n uint64) {
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
func openDebug(t testing.TB, sections map[string][]byte) (*lines.Table, error) {
	t.Helper()
	data := image(t, sections)
	return lines.New(objects.Open(t, data), nil)
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
