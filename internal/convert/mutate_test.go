package convert

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// tryBytes converts bytes that may be anything: to a result that checkRun
// accepts, or to an error.
func (s *scratch) tryBytes(t *testing.T, data []byte) {
	t.Helper()
	opts := patch.Options{FixedLayout: true}
	run, err := s.convert(data, opts)
	if (run != nil) == (err != nil) {
		t.Fatalf("got %v and error %v", run, err)
	}
	if err == nil {
		s.checkRun(t, data, opts, run)
	}
}

// TestEveryByteOfTheTablesMayBeWrong tries every byte in a run of whole products, in others
// one of some: a wrong byte of a symbol or a relocation is like that of the next one.
func TestEveryByteOfTheTablesMayBeWrong(t *testing.T) {
	stride := 5 // no divisor of an entry's size, so that each byte of entries has its turn
	switch {
	case product.All():
		stride = 1
	case testing.Short():
		stride = 17
	}
	for _, name := range objects.OfEachMachine {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			original := objects.Read(t, name)
			files := newScratch(t)
			for _, r := range objects.Tables(t, original) {
				for at := r[0]; at < r[1]; at += stride {
					mutateByte(t, files, original, at)
				}
			}
		})
	}
}

func mutateByte(t *testing.T, files *scratch, original []byte, at int) {
	t.Helper()
	was := original[at]
	tried := map[byte]bool{was: true}
	for _, b := range []byte{0, ^was, was + 1} {
		if tried[b] {
			continue
		}
		tried[b] = true
		data := bytes.Clone(original)
		data[at] = b
		tryByte(t, files, data, at)
	}
}

// tryByte tries an object with a wrong byte, and says which it is where that fails.
func tryByte(t *testing.T, files *scratch, data []byte, at int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("with byte %#x = %#02x", at, data[at])
		}
	}()
	if files.tryBytes(t, data); t.Failed() {
		t.FailNow()
	}
}

func TestTruncationIsAnError(t *testing.T) {
	for _, name := range objects.OfEachMachine {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			original := objects.Read(t, name)
			files := newScratch(t)
			for n := range original {
				if run, err := files.convert(original[:n], patch.Options{FixedLayout: true}); err == nil {
					t.Fatalf("%d of %d bytes are converted: %+v", n, len(original), run.changed)
				}
			}
		})
	}
}

// headerAt returns where the header of the first section is that want accepts.
func headerAt(t *testing.T, data []byte, want func(typ elf.SectionType, size uint64) bool) []byte {
	t.Helper()
	table := data[binary.LittleEndian.Uint64(data[40:]):]
	for i := 1; i < int(binary.LittleEndian.Uint16(data[60:])); i++ {
		h := table[64*i : 64*i+64]
		if want(elf.SectionType(binary.LittleEndian.Uint32(h[4:])), binary.LittleEndian.Uint64(h[32:])) {
			return h
		}
	}
	t.Fatal("no such section")
	return nil
}

// What has no contents takes no room, wherever it claims to stand.
func TestEmptySectionFarAwayTakesNoRoom(t *testing.T) {
	original := objects.Read(t, "existing.amd64-gcc12-O2.o")
	want := expect.Value(newScratch(t).convert(original, patch.Options{FixedLayout: true}))(t)
	for _, far := range []uint64{1 << 30, 1 << 62, 1 << 63} {
		data := bytes.Clone(original)
		h := headerAt(t, data, func(typ elf.SectionType, _ uint64) bool { return typ == elf.SHT_NOBITS })
		binary.LittleEndian.PutUint64(h[24:], far)
		binary.LittleEndian.PutUint64(h[48:], far)
		run := expect.Value(newScratch(t).convert(data, patch.Options{FixedLayout: true}))(t)
		if len(run.data) > len(want.data)+16 {
			t.Errorf("an empty section at %#x: %d bytes, want about %d", far, len(run.data), len(want.data))
		}
	}
}

func TestSectionZeroOfAnotherTypeIsAnError(t *testing.T) {
	data := objects.Read(t, "existing.amd64-gcc12-O2.o")
	null := data[binary.LittleEndian.Uint64(data[40:]):]
	binary.LittleEndian.PutUint32(null[4:], uint32(elf.SHT_GROUP))
	binary.LittleEndian.PutUint64(null[32:], 1<<40)
	files := newScratch(t)
	want := files.Path() + ": section 0 is of type SHT_GROUP, want SHT_NULL"
	expect.Equal(t, want, expect.Failure(files.convert(data, patch.Options{FixedLayout: true})))
}

// FuzzConvert converts objects in memory, with the flags that a byte stands
// for. The file's content may lead to an error, never to a panic or to an
// output that checkRun does not accept.
func FuzzConvert(f *testing.F) {
	const limit = 16 << 10 // small inputs fuzz faster
	for i, file := range append(objects.Committed(f, limit), objects.Foreign(f, limit)...) {
		f.Add(file.Data, byte(0))
		f.Add(file.Data, byte(i))
	}
	files := newScratch(f)
	f.Fuzz(func(t *testing.T, data []byte, flags byte) {
		opts := fuzzOptions(flags)
		run, err := files.convert(data, opts)
		if (run != nil) == (err != nil) {
			t.Fatalf("got %v and error %v", run, err)
		}
		if err == nil {
			files.checkRun(t, data, opts, run)
		}
	})
}

// fuzzOptions spreads the flags of convert over a byte.
func fuzzOptions(b byte) patch.Options {
	opts := patch.Options{FixedLayout: true}
	opts.Layout.Format = linkerset.Format(b % 3)
	b /= 3
	if b&1 != 0 {
		opts.Layout.Name = "my_set"
	}
	opts.NoRecords = b&2 != 0
	opts.DropRelocations = b&4 != 0
	if b&8 != 0 {
		opts.ReturnThunk.Symbol = "__x86_return_thunk"
	}
	if b&16 != 0 {
		opts.Names.Symbols = []string{"use", "outside"}
	}
	if b&32 != 0 {
		opts.Notes = patch.WithNotes
	}
	opts.DTrace = b&64 != 0
	return opts
}

// What is not loaded names no stub any more, and no probe object instead of one: its
// entries against stubs that are defined elsewhere name nothing, and the others are the
// same.
func TestWhatIsNotLoadedNamesNoStub(t *testing.T) {
	forgotten := 0
	converted(t, nil, func(t *testing.T, c run) {
		before, after := viewFile(t, c.before), viewFile(t, c.after)
		for i, s := range before.Sections {
			if !isRelocSection(s) || before.Sections[s.Info].Flags&elf.SHF_ALLOC != 0 {
				continue
			}
			want := before.relocs(i)
			for j := range want {
				if namesStub(want[j]) {
					want[j] = viewReloc{Offset: want[j].Offset, Type: 0} // R_<machine>_NONE of all machines here
					forgotten++
				}
			}
			expect.Equal(t, want, after.relocs(i), "%s", s.Name)
		}
	})
	if forgotten < 6 && !testing.Short() {
		t.Errorf("only %d entries named a stub", forgotten)
	}
}

// namesStub reports whether a relocation is against a stub that is defined elsewhere.
func namesStub(r viewReloc) bool {
	return stubID(r.Sym.Name) != "" && r.Sym.Section == elf.SHN_UNDEF
}

// Of an unknown machine it is not known which relocation names nothing.
func TestWhatIsNotLoadedOfUnknownMachines(t *testing.T) {
	data := objects.Read(t, "notloaded.amd64-clang19.o")
	binary.LittleEndian.PutUint16(data[18:], uint16(elf.EM_IA_64))
	text := headerAt(t, data, func(typ elf.SectionType, size uint64) bool { return typ == elf.SHT_PROGBITS && size > 0 })
	binary.LittleEndian.PutUint64(text[8:], 0) // its flags: nothing that is loaded names a stub
	run, err := newScratch(t).convert(data, patch.Options{FixedLayout: true})
	if err == nil || !strings.HasSuffix(err.Error(), "holds probes, and EM_IA_64 of class ELFCLASS64 is not supported") {
		t.Errorf("got %+v and error %v", run, err)
	}
}
