package convert

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// scratch converts objects that tests make up. The results stay in memory.
type scratch struct{ *objects.Scratch }

func newScratch(t testing.TB) *scratch {
	t.Helper()
	return &scratch{objects.NewScratch(t)}
}

// memoryRun is what a conversion made.
type memoryRun struct {
	sites   []patch.Site
	loads   []patch.Load
	data    []byte // the input itself when nothing changes
	changed bool
}

// convert does all that a conversion does but for the writing. Refusals are one
// error.
func (s *scratch) convert(data []byte, opts patch.Options) (*memoryRun, error) {
	if err := s.Write(data); err != nil {
		return nil, err
	}
	in, err := input.Open(s.Path())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	run := &memoryRun{data: data}
	c := New(Options{Patch: opts, Planned: func(_ *input.Object, plan *patch.Plan) error {
		run.sites, run.loads = plan.Sites, plan.Loads
		return nil
	}}, nil)
	made := c.convertSource(in.Source())
	if made.err != nil {
		return nil, made.err
	}
	if made.output != nil {
		run.changed = true
		if run.data, err = objects.Assemble(made.output, data); err != nil {
			return nil, err
		}
	}
	return run, nil
}

// subjectOf opens an object that is known to be sound.
func subjectOf(t *testing.T, data []byte) *input.Object {
	t.Helper()
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "memory.o"))(t)
	return &input.Object{Object: o, Machine: machines.Lookup(o.ABI())}
}

// checkRun verifies what is true of every conversion that succeeds.
func (s *scratch) checkRun(t *testing.T, data []byte, opts patch.Options, run *memoryRun) {
	t.Helper()
	if !run.changed {
		if !bytes.Equal(run.data, data) {
			t.Fatal("nothing changes, and the output is not the input")
		}
		if len(run.sites) > 0 {
			t.Fatalf("%d sites, and nothing changes", len(run.sites))
		}
		return
	}
	again := expect.Value(s.convert(run.data, opts))(t, "the output cannot be converted again")
	if again.changed {
		t.Fatalf("a second conversion changes the output: %d sites, %d bytes and then %d",
			len(again.sites), len(run.data), len(again.data))
	}
	before, after := subjectOf(t, data), subjectOf(t, run.data)
	wantNoStubs(t, after, opts)
	wantOnlySitesChanged(t, run, before, after)
	wantRecords(t, run, before, after, opts)
	if f, err := elf.NewFile(bytes.NewReader(data)); err != nil || claimsCompression(f) {
		return // debug/elf is stricter, and reads contents that are compressed
	}
	expect.Value(elf.NewFile(bytes.NewReader(run.data)))(t, "debug/elf reads the input and not the output")
}

func claimsCompression(f *elf.File) bool {
	return slices.ContainsFunc(f.Sections, func(s *elf.Section) bool { return s.Flags&elf.SHF_COMPRESSED != 0 })
}

// wantNoStubs demands that no undefined stub is left.
func wantNoStubs(t *testing.T, s *input.Object, opts patch.Options) {
	t.Helper()
	syms := expect.Value(s.Symbols())(t)
	for i := 1; i < syms.Len(); i++ {
		sym := syms.At(i)
		if sym.Section != 0 || sym.Type != elf.STT_NOTYPE && sym.Type != elf.STT_FUNC && sym.Type != elf.STT_GNU_IFUNC {
			continue // no stub
		}
		for _, prefix := range slices.Concat(opts.Names.Prefixes, opts.Names.EnabledPrefixes) {
			if strings.HasPrefix(sym.Name, prefix) && sym.Name != prefix {
				t.Fatalf("symbol %d is the undefined stub %q", i, sym.Name)
			}
		}
	}
}

// wantOnlySitesChanged compares the sections of the input that hold neither
// symbols nor relocations, nor what depends on them, with those of the output.
func wantOnlySitesChanged(t *testing.T, run *memoryRun, before, after *input.Object) {
	t.Helper()
	for i := range before.Sections {
		was, now := before.Sections[i], after.Sections[i]
		if i == 0 || !was.InFile() {
			continue
		}
		switch was.Type {
		case elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_REL, elf.SHT_RELA, objects.CREL, elf.SHT_GROUP, elf.SHT_SYMTAB_SHNDX, 0x6fff4c03:
			continue
		}
		if was.Name != now.Name || was.Type != now.Type || was.Flags != now.Flags || was.Align != now.Align {
			t.Fatalf("section %d was %+v and is %+v", i, was, now)
		}
		if was.Size != now.Size && !slices.Contains(returnSites, was.Name) {
			t.Fatalf("section %d %q was %d bytes long and is %d", i, was.Name, was.Size, now.Size)
		}
		want := sectionData(t, before, i)
		for _, site := range run.sites {
			if site.Relocs.Target == i {
				copy(want[site.Change.Site.Offset:], site.Change.New)
			}
		}
		for _, l := range run.loads {
			if l.Relocs.Target == i {
				copy(want[l.Site.Offset:], l.New)
			}
		}
		if got := sectionData(t, after, i); !bytes.Equal(got[:len(want)], want) {
			t.Fatalf("section %d %q has changed outside of its sites", i, was.Name)
		}
	}
}

func sectionData(t *testing.T, s *input.Object, sec int) []byte {
	t.Helper()
	return expect.Value(s.Data(sec))(t)
}

// wantRecords demands a record for each site, and no other. Where the input
// has records already that make no sense, they are not counted.
func wantRecords(t *testing.T, run *memoryRun, before, after *input.Object, opts patch.Options) {
	t.Helper()
	old, err := readRecords(before, opts.Layout)
	if err != nil {
		return
	}
	entries := expect.Value(readRecords(after, opts.Layout))(t, "the records cannot be read")
	type record struct {
		kind arch.Kind
		text int
		site uint64
	}
	count := map[record]int{}
	for _, e := range entries {
		count[record{e.Kind, e.Address.Section, e.Address.Offset}]++
	}
	for _, e := range old {
		count[record{e.Kind, e.Address.Section, e.Address.Offset}]--
	}
	if !opts.NoRecords {
		for _, s := range run.sites {
			count[record{s.Stub.Kind, s.Relocs.Target, s.Change.RecordedOffset}]--
		}
	}
	for r, n := range count {
		if n != 0 {
			t.Fatalf("record of %+v: %+d", r, n)
		}
	}
}

func readRecords(o *input.Object, layout linkerset.Layout) ([]linkerset.Entry, error) {
	if o.Machine == nil {
		return nil, nil
	}
	im, err := image.Open(o.Object, o.Machine)
	if err != nil {
		return nil, err
	}
	entries, faults, err := layout.Read(im)
	if err == nil && len(faults) > 0 {
		err = faults[0]
	}
	return entries, err
}
