package image_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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

// FuzzCore reads core files. What a file maps is read at its path.
func FuzzCore(f *testing.F) {
	for _, file := range objects.Committed(f, 8<<10) {
		f.Add(file.Data)
	}
	f.Add(newTinyCore(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "core")
		disk.Write(t, path, string(data))
		p, err := image.OpenCore(path)
		if err != nil {
			mustName(t, err)
			return
		}
		defer p.Close()
		for _, m := range p.Modules {
			_, err := p.Bytes(image.Addr{Offset: m.Start}, 16)
			mustName(t, err)
			_, err = p.ModuleArrays(m, "sdt_instances_set")
			mustName(t, err)
		}
	})
}

// mustName sees to it that an error names a file.
func mustName(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*elfreloc.Error](err); err != nil && (!ok || e.File == "") {
		t.Fatalf("an error that names no file: %v", err)
	}
}

// newTinyCore makes a core file of a process that has mapped this program.
func newTinyCore(f *testing.F) []byte {
	program := expect.Value(os.Executable())(f)
	order := binary.LittleEndian
	words := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = order.AppendUint64(b, v)
		}
		return b
	}
	note := func(typ uint32, desc []byte) []byte {
		b := order.AppendUint32(nil, 5)
		b = order.AppendUint32(b, uint32(len(desc)))
		b = append(order.AppendUint32(b, typ), "CORE\x00\x00\x00\x00"...)
		return append(b, append(desc, make([]byte, -len(desc)&3)...)...)
	}
	const address, page = 0x400000, 4096
	notes := append(note(6, words(6, page, 9, address, 0, 0)),
		note(0x46494c45, append(words(1, page, address, address+16*page, 0), program+"\x00"...))...)
	head := disk.Read(f, program)[:page]
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = append(b, 4, 0, byte(elf.EM_X86_64), 0, 1, 0, 0, 0)
	b = append(b, words(0, 64, 0)...)
	b = append(b, 0, 0, 0, 0, 64, 0, 56, 0, 2, 0, 0, 0, 0, 0, 0, 0)
	const start = 64 + 2*56
	b = append(append(b, 4, 0, 0, 0, 4, 0, 0, 0), words(start, 0, 0, uint64(len(notes)), 0, 4)...)
	b = append(append(b, 1, 0, 0, 0, 5, 0, 0, 0), words(start+uint64(len(notes)), address, 0, page, 16*page, page)...)
	return append(append(b, notes...), head...)
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
