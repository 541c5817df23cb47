package image_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// tiny is a shared library for amd64 in one segment, without section headers.
// Its only symbols are an undefined "elsewhere" and those that bound the array
// "set" of two words, which it relocates.
type tiny struct {
	load    elf.Prog64
	dynamic []elf.Dyn64
	rela    []elf.Rela64
	symbols []elf.Sym64
	gnuHash []uint32
	words   [4]uint64
}

// The addresses of the parts of a tiny image. Its addresses are its offsets in
// the file, and this more.
const (
	tinyBase    = 0x10000
	tinyDynamic = tinyBase + 0x100
	tinyRela    = tinyBase + 0x200
	tinySymbols = tinyBase + 0x300
	tinyStrings = tinyBase + 0x400
	tinyHash    = tinyBase + 0x500
	tinyWords   = tinyBase + 0x600
	tinySize    = 0x700
	tinyEnd     = tinyBase + tinySize + 0x1000
)

const tinyNames = "\x00elsewhere\x00__start_set\x00__stop_set\x00"

func newTiny() *tiny {
	symbol := func(name uint32, section uint16, value uint64) elf.Sym64 {
		return elf.Sym64{Name: name, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT), Shndx: section, Value: value}
	}
	return &tiny{
		load: elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W | elf.PF_X), Vaddr: tinyBase,
			Filesz: tinySize, Memsz: tinySize + 0x1000, Align: 0x1000},
		dynamic: []elf.Dyn64{
			{Tag: int64(elf.DT_RELA), Val: tinyRela}, {Tag: int64(elf.DT_RELASZ), Val: 48},
			{Tag: int64(elf.DT_SYMTAB), Val: tinySymbols}, {Tag: int64(elf.DT_STRTAB), Val: tinyStrings},
			{Tag: int64(elf.DT_STRSZ), Val: uint64(len(tinyNames))}, {Tag: int64(elf.DT_GNU_HASH), Val: tinyHash}, {},
		},
		rela: []elf.Rela64{
			{Off: tinyWords + 8, Info: elf.R_INFO(0, uint32(elf.R_X86_64_RELATIVE)), Addend: tinyWords},
			{Off: tinyWords, Info: elf.R_INFO(1, uint32(elf.R_X86_64_64)), Addend: 3},
		},
		symbols: []elf.Sym64{{}, symbol(1, 0, 0), symbol(11, 1, tinyWords), symbol(23, 1, tinyWords+16)},
		// One bucket, the first symbol, a word of filter, a shift; the filter; the
		// bucket; a chain of two symbols.
		gnuHash: []uint32{1, 2, 1, 0, 0, 0, 2, 0, 1},
		words:   [4]uint64{0, 0, 0x1234, 0},
	}
}

func (m *tiny) bytes() []byte {
	file := make([]byte, tinySize)
	put := func(off int, v any) {
		if _, err := binary.Encode(file[off:], binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	header := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64,
		Ehsize: 64, Phentsize: 56, Phnum: 2, Shentsize: 64}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	put(0, header)
	put(64, m.load)
	put(64+56, elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Off: tinyDynamic - tinyBase, Vaddr: tinyDynamic,
		Filesz: uint64(16 * len(m.dynamic)), Memsz: uint64(16 * len(m.dynamic))})
	for at, part := range map[int]any{tinyDynamic: m.dynamic, tinyRela: m.rela, tinySymbols: m.symbols,
		tinyStrings: []byte(tinyNames), tinyHash: m.gnuHash, tinyWords: m.words} {
		put(at-tinyBase, part)
	}
	return file
}

// set changes a tag of the dynamic section.
func (m *tiny) set(tag elf.DynTag, value uint64) {
	for i := range m.dynamic {
		if m.dynamic[i].Tag == int64(tag) {
			m.dynamic[i].Val = value
		}
	}
}

func openBytes(data []byte) (image.Image, error) {
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "tiny.so")
	if err != nil {
		return nil, err
	}
	return openErr(o)
}

func TestTiny(t *testing.T) {
	im := expect.Value(openBytes(newTiny().bytes()))(t)
	all, err := im.Arrays("set")
	want := image.Range{Name: "set", Start: image.Addr{Offset: tinyWords}, Size: 16, Writable: true}
	if err != nil || len(all) != 1 || all[0] != want {
		t.Fatalf("%v, %v, want %v", all, err, want)
	}
	for off, want := range map[uint64]image.Ref{
		0:  {Addr: image.Addr{Offset: 3}, Symbol: "elsewhere", Undefined: true},
		8:  {Addr: image.Addr{Offset: tinyWords}},
		16: {Addr: image.Addr{Offset: 0x1234}},
		24: {},
	} {
		expect.Equal(t, want, expect.Value(im.Word(all[0].Start.Add(off)))(t), "word %d", off)
	}
	if names, err := im.SymbolsAt(all[0].Start); err != nil || len(names) != 1 || names[0] != "__start_set" {
		t.Errorf("%q, %v", names, err)
	}
}

// TestHostile damages a tiny image. Each fault is told when what it is in is
// asked for, and what does not need that is told still.
func TestHostile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(m *tiny)
		want   string
	}{
		{"segment", func(m *tiny) { m.load.Memsz = 1<<64 - tinyBase + 1 },
			"tiny.so: a segment of 0xffffffffffff0001 bytes at 0x10000 ends beyond the address space"},
		{"file size", func(m *tiny) { m.load.Filesz, m.load.Memsz = 1<<40, 1<<40; m.set(elf.DT_RELASZ, 48<<30) },
			"tiny.so: 0x10200: a table of dynamic relocations of 0xc00000000 bytes is not in the image"},
		{"beyond the end", func(m *tiny) { m.load.Filesz, m.load.Memsz = 1<<40, 1<<40; m.set(elf.DT_RELA, tinyBase+tinySize) },
			"tiny.so: 0x10700: is at offset 0x700, beyond the file's end at 0x700"},
		{"dynamic", func(m *tiny) { m.load.Filesz = 0x80 },
			"tiny.so: 0x10100: the dynamic section of 0x70 bytes is not in the image"},
		{"relocations", func(m *tiny) { m.set(elf.DT_RELA, 0x123) },
			"tiny.so: 0x123: a table of dynamic relocations of 0x30 bytes is not in the image"},
		{"half a relocation", func(m *tiny) { m.set(elf.DT_RELASZ, 25) },
			"tiny.so: 25 bytes of dynamic relocations of 24 bytes"},
		{"packed", func(m *tiny) { m.dynamic[6].Tag = 0x60000011 },
			"tiny.so: has Android's packed relocations, which are not supported"},
		{"symbol", func(m *tiny) { m.rela[1].Info = elf.R_INFO(1<<31, uint32(elf.R_X86_64_64)) },
			"tiny.so: 0x10300: the dynamic symbol table of 0xc00000018 bytes is not in the image"},
		{"name", func(m *tiny) { m.symbols[1].Name = 1 << 20 },
			"tiny.so: dynamic symbol 1: string offset 0x100000 is beyond the table's end at 0x22"},
		{"strings", func(m *tiny) { m.set(elf.DT_STRSZ, 1<<40) },
			"tiny.so: 0x10400: the dynamic string table of 0x10000000000 bytes is not in the image"},
		{"hash", func(m *tiny) { m.set(elf.DT_GNU_HASH, tinyEnd) },
			"tiny.so: 0x11700: the GNU hash table of 0x10 bytes is not in the image"},
		{"buckets", func(m *tiny) { m.gnuHash[0] = 1 << 31 },
			"tiny.so: 0x10518: the buckets of the GNU hash table of 0x200000000 bytes is not in the image"},
		{"chain", func(m *tiny) { m.gnuHash[8] = 0; m.words = [4]uint64{} },
			"tiny.so: 0x10500: a chain of the GNU hash table has no end"},
		{"array", func(m *tiny) { m.symbols[3].Value = tinyEnd },
			"tiny.so: 0x10600: __start_set to __stop_set, at 0x11700, is not in the image"},
		{"backwards", func(m *tiny) { m.symbols[3].Value = tinyWords - 1 },
			"tiny.so: 0x10600: __start_set to __stop_set, at 0x105ff, is not in the image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newTiny()
			tt.damage(m)
			expect.Equal(t, tt.want, fmt.Sprint(firstError(m.bytes())))
		})
	}
}

// firstError returns what goes wrong first in reading all of an image.
func firstError(data []byte) error {
	im, err := openBytes(data)
	if err != nil {
		return err
	}
	all, err := im.Arrays("set")
	if err != nil {
		return err
	}
	for _, r := range all {
		for off := uint64(0); off < r.Size; off += 8 {
			if _, err := im.Word(r.Start.Add(off)); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestOutside reads where there is nothing, or nothing but zeros.
func TestOutside(t *testing.T) {
	im := expect.Value(openBytes(newTiny().bytes()))(t)
	at := func(addr uint64) image.Addr { return image.Addr{Offset: addr} }
	for _, tt := range []struct {
		addr, n uint64
		want    string
	}{
		{tinyBase + tinySize - 8, 8, ""},
		{tinyBase + tinySize - 8, 16, ""},
		{tinyBase + tinySize, tinySize, ""},
		{tinyEnd - 8, 8, ""},
		{tinyEnd - 8, 9, "tiny.so: 0x116f8: 0x9 bytes wanted of a segment that ends at 0x11700"},
		{tinyBase + tinySize, tinySize + 1, "tiny.so: 0x10700: 0x701 bytes wanted of a file of 0x700 bytes"},
		{tinyEnd, 1, "tiny.so: 0x11700: is not in the image"},
		{tinyBase - 1, 1, "tiny.so: 0xffff: is not in the image"},
		{1<<64 - 1, 1, "tiny.so: 0xffffffffffffffff: is not in the image"},
	} {
		got, err := im.Bytes(at(tt.addr), tt.n)
		if tt.want == "" && (err != nil || !bytes.Equal(got, make([]byte, tt.n))) {
			t.Errorf("%#x: % x, %v", tt.addr, got, err)
		} else if tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("%#x: %v, want %s", tt.addr, err, tt.want)
		}
	}
}

// FuzzLinked reads all that records are read through of any ELF file. Each
// method gives a result or an error that names the file, and what is an array
// can be read.
func FuzzLinked(f *testing.F) {
	f.Add(newTiny().bytes(), uint64(tinyWords))
	for _, file := range objects.Foreign(f, 32<<10) {
		f.Add(file.Data, uint64(0x400000))
	}
	for _, file := range objects.Committed(f, 8<<10) {
		f.Add(file.Data, uint64(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, addr uint64) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "fuzz")
		if err != nil {
			return
		}
		im, err := openErr(o)
		if err != nil {
			checkError(t, err)
			return
		}
		readAt(t, im, image.Addr{Offset: addr})
		readAt(t, im, image.Addr{Section: int(addr % 16), Offset: addr >> 4})
		for _, name := range []string{"set", "sdt_instances_set", "sdt_instances_rel", ".data"} {
			all, err := im.Arrays(name)
			checkError(t, err)
			total := uint64(0)
			for _, r := range all {
				got, err := im.Bytes(r.Start, r.Size)
				if checkError(t, err); err == nil && uint64(len(got)) != r.Size {
					t.Fatalf("%d bytes of %+v", len(got), r)
				}
				if total += r.Size; total > uint64(len(data)) {
					t.Fatalf("arrays of %d bytes in a file of %d bytes", total, len(data))
				}
				for off := uint64(0); off < min(r.Size, 256); off += 4 {
					readAt(t, im, r.Start.Add(off))
				}
			}
		}
	})
}

// readAt calls every method for an address, and for what is referred to there.
func readAt(t *testing.T, im image.Image, a image.Addr) {
	t.Helper()
	im.Place(a)
	im.Executable(a)
	_, err := im.SymbolsAt(a)
	checkError(t, err)
	_, err = im.Distance(a)
	checkError(t, err)
	ref, err := im.Word(a)
	if checkError(t, err); err != nil || ref.Undefined {
		return
	}
	_, err = im.SymbolsAt(ref.Addr)
	checkError(t, err)
	_, err = im.Bytes(ref.Addr, 96)
	checkError(t, err)
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*elfreloc.Error](err); err != nil && (!ok || e.File != "fuzz") {
		t.Fatalf("an error that does not name its file: %v", err)
	}
}
