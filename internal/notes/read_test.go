package notes_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

// systemTap is the directory of sys/sdt.h, which compilers for other machines do not look
// into by themselves.
const systemTap = "/usr/include/x86_64-linux-gnu"

// sources are a program with notes.
var sources = []string{"app.c", "hit.c", "plain.c"}

// compiled returns the objects of the program.
func compiled(t testing.TB, m *toolchains.Machine, cc toolchains.Compiler) []string {
	t.Helper()
	if _, err := os.Stat(systemTap + "/sys/sdt.h"); err != nil {
		tools.Unavailable(t, "no sys/sdt.h")
	}
	words := m.CC(cc)
	tools.Need(t, words[0], m.Tool("gcc"))
	var objects []string
	for _, source := range sources {
		out := filepath.Join(t.TempDir(), strings.TrimSuffix(source, "c")+"o")
		flags := []string{"-O2", "-fPIC", "-idirafter", systemTap, "-c", "-o", out, filepath.Join("testdata", source)}
		tools.Must(t, words[0], append(words[1:], flags...)...)
		objects = append(objects, out)
	}
	return objects
}

// linked links objects in a mode.
func linked(t testing.TB, m *toolchains.Machine, l toolchains.Linker, mode string, objects []string) string {
	t.Helper()
	tools.Need(t, l.Path)
	out := filepath.Join(t.TempDir(), "app")
	words := append([]string{"-B" + tools.Driver(t, l.Path), mode, "-o", out}, objects...)
	tools.Must(t, m.Tool("gcc"), words...)
	return out
}

// opened opens a file whose bytes are given.
func opened(t testing.TB, name string, data []byte) (*elfreloc.Object, image.Image) {
	t.Helper()
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), name))(t)
	return o, expect.Value(image.Open(o, machines.Lookup(o.ABI())))(t)
}

// notesOf reads the notes of a file, which have no fault.
func notesOf(t testing.TB, path string) []notes.Note {
	t.Helper()
	o, im := opened(t, path, disk.Read(t, path))
	notes, faults, err := notes.Read(o, im)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	return notes
}

// shown writes notes as the tests compare them.
func shown(notes []notes.Note) []string {
	var all []string
	for _, n := range notes {
		all = append(all, fmt.Sprintf("%s:%s %#x %#x %s", n.Provider, n.Name, n.Site.Offset, n.Semaphore.Offset, n.Args))
	}
	return all
}

var noteText = regexp.MustCompile(`Provider: (.*)\n\s*Name: (.*)\n\s*Location: (0x[0-9a-f]+), Base: 0x[0-9a-f]+, Semaphore: (0x[0-9a-f]+)\n\s*Arguments: ?(.*)\n`)

// readelf returns what readelf shows of the notes of a file.
func readelf(t testing.TB, path string) []string {
	t.Helper()
	var all []string
	for _, m := range noteText.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", path), -1) {
		site, _ := strconv.ParseUint(m[3], 0, 64)
		semaphore, _ := strconv.ParseUint(m[4], 0, 64)
		all = append(all, fmt.Sprintf("%s:%s %#x %#x %s", m[1], m[2], site, semaphore, m[5]))
	}
	return all
}

func TestImages(t *testing.T) {
	for _, m := range product.Few(t.Name(), toolchains.Machines) {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
			if !m.TakesMemory(cc) {
				continue
			}
			t.Run(m.Name+"-"+cc.Name, func(t *testing.T) {
				t.Parallel()
				objects := compiled(t, m, cc)
				for _, l := range product.Few(t.Name(), m.Newest()) {
					for _, mode := range []string{"-no-pie", "-pie", "-shared"} {
						out := linked(t, m, l, mode, objects)
						got := shown(notesOf(t, out))
						if diff := cmp.Diff(readelf(t, out), got); diff != "" || len(got) != 3 {
							t.Errorf("%s %s: readelf and notes: %s", l.Name, mode, diff)
						}
					}
				}
			})
		}
	}
}

// In an object the relocations of notes tell what they refer to: those that readelf
// lists.
func TestObjects(t *testing.T) {
	for _, m := range product.Few(t.Name(), toolchains.Machines) {
		t.Run(m.Name, func(t *testing.T) {
			objects := compiled(t, m, toolchains.GCC)
			hit, plain := notesOf(t, objects[1]), notesOf(t, objects[2])
			if len(hit) != 2 || len(plain) != 1 {
				t.Fatalf("%+v %+v", hit, plain)
			}
			o := tools.OpenELF(t, objects[1])
			for _, n := range hit {
				if !n.Semaphore.Undefined || n.Semaphore.Symbol != "app_hit_semaphore" {
					t.Errorf("%+v", n)
				}
				expect.Equal(t, ".text", o.Sections[n.Site.Section].Name, "where a site is")
				want := regexp.MustCompile(fmt.Sprintf(`(?m) R_\S+ +[0-9a-f]+ \S+ \+ %x$`, n.Site.Offset))
				if m == toolchains.I386 { // readelf shows no addends of SHT_REL
					if code, err := o.Data(n.Site.Section); err != nil || code[n.Site.Offset] != 0x90 {
						t.Errorf("no nop at %#x: %v", n.Site.Offset, err)
					}
				} else if m == toolchains.ARM {
					if code, err := o.Data(n.Site.Section); err != nil || !bytes.Equal(code[n.Site.Offset:][:2], []byte{0x00, 0xbf}) {
						t.Errorf("no nop of Thumb at %#x: %v", n.Site.Offset, err)
					}
				} else if !m.Relaxes && !want.MatchString(tools.Must(t, "readelf", "-rW", objects[1])) {
					t.Errorf("no relocation leads to %#x", n.Site.Offset)
				}
			}
			if n := plain[0]; !n.Semaphore.Null() || n.Provider != "app" || n.Name != "end__of__line" {
				t.Errorf("%+v", n)
			}
			out := filepath.Join(t.TempDir(), "all.o")
			tools.Must(t, m.Tool("ld"), append([]string{"-r", "-o", out}, objects...)...)
			all := notesOf(t, out)
			if len(all) != 3 || all[0].Semaphore.Undefined || all[0].Semaphore != all[1].Semaphore || !all[2].Semaphore.Null() {
				t.Errorf("%+v", all)
			}
			expect.Equal(t, ".probes", tools.OpenELF(t, out).Sections[all[0].Semaphore.Section].Name, "%+v", all[0])
		})
	}
}

// moved returns an image whose notes are of where it was linked for before it was moved by
// some bytes, as prelink moves it.
func moved(t testing.TB, data []byte, by uint64) []byte {
	t.Helper()
	o, _ := opened(t, "app", data)
	data = bytes.Clone(data)
	count := 0
	for i := range o.Sections {
		if o.Sections[i].Name != ".stapsdt.base" {
			continue
		}
		base := make([]byte, 8)
		o.Encoding.PutWord(base, o.Sections[i].Addr)
		for j := range o.Sections {
			if s := &o.Sections[j]; s.Name == ".note.stapsdt" {
				notes := data[s.Offset : s.Offset+s.Size]
				for at := 0; at+8 <= len(notes); at += 4 {
					if bytes.Equal(notes[at:at+8], base) {
						o.Encoding.PutWord(notes[at:], o.Sections[i].Addr-by)
						count++
					}
				}
			}
		}
	}
	if count != 3 {
		t.Fatalf("%d notes", count)
	}
	return data
}

// What prelink has moved is found where gdb finds it.
func TestPrelink(t *testing.T) {
	tools.Need(t, "gdb")
	m := toolchains.AMD64
	before := linked(t, m, m.Linker("bfd"), "-pie", compiled(t, m, toolchains.GCC))
	after := filepath.Join(t.TempDir(), "moved")
	expect.OK(t, os.WriteFile(after, moved(t, disk.Read(t, before), 0x20), 0o777))
	old, got := notesOf(t, before), notesOf(t, after)
	probes := tools.Must(t, "gdb", "-nx", "-batch", "-ex", "info probes stap", after)
	for i, n := range got {
		if want := old[i].Site.Offset + 0x20; n.Site.Offset != want || n.Semaphore.Null() != old[i].Semaphore.Null() {
			t.Errorf("%+v, want a site at %#x", n, want)
		}
		want := fmt.Sprintf(`(?m)^stap +app +%s +0x0*%x `, n.Name, n.Site.Offset)
		if !n.Semaphore.Null() {
			want += fmt.Sprintf(`+0x0*%x `, n.Semaphore.Offset)
		}
		if !regexp.MustCompile(want).MatchString(probes) {
			t.Errorf("gdb has no %q:\n%s", want, probes)
		}
	}
}

// brokenNotes are changes of the first note of app, and what is said of it. The header
// is of three words, and the owner of eight bytes.
var brokenNotes = []struct {
	name   string
	change func(note []byte) []byte // the section
	want   string
	left   int // notes that can be read
}{
	{"short", func(b []byte) []byte { return b[:8] }, ".note.stapsdt+0x0: 8 bytes are too few for the header of a note", 0},
	{"long owner", func(b []byte) []byte { b[3] = 0xff; return b }, ".note.stapsdt+0x0: a note ends ", 0},
	{"long descriptor", func(b []byte) []byte { b[7] = 0xff; return b }, ".note.stapsdt+0x0: a note ends ", 0},
	{"cut off", func(b []byte) []byte { return b[:len(b)-4] }, ": a note ends ", 2},
	{"no addresses", func(b []byte) []byte { b[4] = 20; return b[:40] }, ".note.stapsdt+0x14: a note of 20 bytes, which has no room for three addresses", 0},
	{"no strings", func(b []byte) []byte { b[4] = 24; return b[:44] }, ".note.stapsdt+0x14: a string of a note has no end", 0},
	{"another owner", func(b []byte) []byte { b[12] = 'S'; return b }, "", 2},
	{"another type", func(b []byte) []byte { b[8] = 4; return b }, "", 2},
	{"no note", func(b []byte) []byte { return nil }, "", 0},
}

func TestBrokenNotes(t *testing.T) {
	m := toolchains.AMD64
	path := linked(t, m, m.Linker("bfd"), "-pie", compiled(t, m, toolchains.GCC))
	for _, c := range brokenNotes {
		t.Run(c.name, func(t *testing.T) {
			data := disk.Read(t, path)
			o, im := opened(t, "app", data)
			for i := range o.Sections {
				if s := &o.Sections[i]; s.Name == ".note.stapsdt" {
					s.Size = uint64(len(c.change(data[s.Offset : s.Offset+s.Size])))
				}
			}
			notes, faults, err := notes.Read(o, im)
			text := ""
			if len(faults) > 0 {
				text = faults[0].Error()
			}
			if err != nil || len(faults) > 1 || len(notes) != c.left || (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("%d notes, %v, %v, want %q", len(notes), faults, err, c.want)
			}
		})
	}
}

// Two sections of notes have the same bytes.
func TestOverlap(t *testing.T) {
	m := toolchains.AMD64
	data := disk.Read(t, linked(t, m, m.Linker("bfd"), "-pie", compiled(t, m, toolchains.GCC)))
	o, im := opened(t, "app", data)
	all := elfreloc.Section{Name: ".note.stapsdt", Type: elf.SHT_NOTE, Size: uint64(len(data)) - 8}
	o.Sections = append(o.Sections, all, all)
	_, _, err := notes.Read(o, im)
	expect.Error(t, err, "overlaps other notes in the file")
}

// FuzzNotes reads the notes of any object or image. Notes come of the file's bytes,
// and every fault names the file.
func FuzzNotes(f *testing.F) {
	seeds.Add(f)
	for _, m := range toolchains.Machines {
		objects := compiled(f, m, toolchains.GCC)
		for _, path := range append(objects, linked(f, m, m.Linker("bfd"), "-pie", objects)) {
			f.Add(disk.Read(f, path))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "fuzz")
		if err != nil {
			return
		}
		im, err := image.Open(o, machines.Lookup(o.ABI()))
		if err != nil {
			return
		}
		notes, faults, err := notes.Read(o, im)
		if err != nil {
			faults = append(faults, err)
		}
		for _, fault := range faults {
			if e, ok := errors.AsType[*elfreloc.Error](fault); !ok || e.File != "fuzz" {
				t.Fatalf("an error that does not name its file: %v", fault)
			}
		}
		size := 0
		for _, n := range notes {
			size += len(n.Provider) + len(n.Name) + len(n.Args) + 3
		}
		if size > len(data) {
			t.Fatalf("strings of %d bytes in a file of %d bytes", size, len(data))
		}
	})
}

// withoutSections removes the section headers of a 64-bit file.
func withoutSections(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) > 64 && elf.Class(data[elf.EI_CLASS]) == elf.ELFCLASS64 {
		clear(data[40:48]) // e_shoff
		clear(data[60:64]) // e_shnum, e_shstrndx
	}
	return data
}

// FuzzFunctions reads the tables of functions of any object or image, with section headers and without. Names are of the file's
// bytes, and every fault names the file.
func FuzzFunctions(f *testing.F) {
	seeds.Add(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, withoutSections(data)} {
			o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "fuzz")
			if err != nil {
				continue
			}
			im, err := image.Open(o, machines.Lookup(o.ABI()))
			if err != nil {
				continue
			}
			rows, faults, err := notes.ReadFunctions(o, im)
			if err != nil {
				faults = append(faults, err)
			}
			for _, fault := range faults {
				if e, ok := errors.AsType[*elfreloc.Error](fault); !ok || e.File != "fuzz" {
					t.Fatalf("an error that does not name its file: %v", fault)
				}
			}
			for i := range rows {
				row := &rows[i]
				if row.Function != "" && (!im.Executable(row.Start) || !bytes.Contains(data, []byte(row.Function+"\x00"))) {
					t.Fatalf("%+v", row)
				}
				if !im.Executable(row.Site) {
					t.Fatalf("%+v is not in code", row)
				}
			}
		}
	})
}

// brokenTables are changes of the table of an object, and what is said of it. The header has 20 bytes, and a row the distances of site and semaphore first.
var brokenTables = []struct {
	change map[int]uint32 // words, by their offsets
	want   string
}{
	{map[int]uint32{0: 0}, "no table of functions, or one that does not end where it says"},
	{map[int]uint32{4: 2}, "a table of functions of version 2, and this program reads version 1; use a later sdtconvert"},
	{map[int]uint32{4: 0xff01}, "a table of functions with an unknown kind of records, sites or columns"},
	{map[int]uint32{4: 0x02000101}, ""}, // other columns: names are elsewhere
	{map[int]uint32{4: 0x40000101}, "a table of functions with an unknown kind of records, sites or columns"},
	{map[int]uint32{8: 1}, "no table of functions, or one that does not end where it says"},
	{map[int]uint32{8: 0xfffffffc}, "no table of functions, or one that does not end where it says"},
	{map[int]uint32{12: 0xffffffff}, "with 4294967295 rows"},
	{map[int]uint32{28: 0xfffffff0}, "a name at 0x"},
	{map[int]uint32{28: 4}, "a name at 0x8 of a table"},
}

func TestBrokenTables(t *testing.T) {
	whole := expect.Value(converted.Bytes(t, objects.Read(t, "small.amd64-clang19-O2.o"), patch.Options{}))(t)
	at := bytes.LastIndex(whole, []byte("sdtf")) // the first table is the empty one
	for _, c := range brokenTables {
		data := bytes.Clone(whole)
		for off, word := range c.change {
			binary.LittleEndian.PutUint32(data[at+off:], word)
		}
		o, im := opened(t, "app", data)
		_, faults, err := notes.ReadFunctions(o, im)
		text := fmt.Sprint(faults)
		if err != nil || c.want != "" && !bytes.Contains([]byte(text), []byte(c.want)) {
			t.Errorf("%v: %v, %v, want %q", c.change, faults, err, c.want)
		}
	}
}
