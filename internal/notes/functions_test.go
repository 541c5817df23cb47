package notes_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/patch"
)

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
