package patch_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/failing"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

func defaults() patch.Options {
	return patch.Options{FixedLayout: true}
}

func planOf(t *testing.T, name string, opts patch.Options) *patch.Plan {
	t.Helper()
	data := objects.Read(t, name)
	o := objects.Open(t, data)
	scan := expect.Value(patch.Find(o, machines.Lookup(o.ABI()), opts))(t)
	return expect.Value(patch.NewPlan(scan))(t)
}

// apply converts an object, and returns what debug/elf sees of it.
func apply(t *testing.T, name string, opts patch.Options) (*elf.File, []string) {
	t.Helper()
	plan := planOf(t, name, opts)
	e := expect.Value(plan.Scan.Object.Edit())(t)
	expect.OK(t, plan.Apply(e))
	f := disk.ELF(t, objects.Save(t, e, objects.Read(t, name)))
	syms := expect.Value(f.Symbols())(t)
	var probes []string
	for _, s := range syms {
		if strings.HasPrefix(s.Name, "sdt_") || strings.HasPrefix(s.Name, "__dtrace_") {
			bind := strings.TrimPrefix(elf.ST_BIND(s.Info).String(), "STB_")
			state := "defined"
			if s.Section == elf.SHN_UNDEF {
				state = "undefined"
			}
			probes = append(probes, strings.Join([]string{s.Name, bind, state, elf.ST_VISIBILITY(s.Other).String()[4:]}, " "))
		}
	}
	return f, probes
}

func TestProbeObjectsTakeThePlaceOfStubs(t *testing.T) {
	relative := defaults()
	relative.Layout = linkerset.Layout{Format: linkerset.Relative}
	for _, c := range []struct {
		name, object string
		opts         patch.Options
		want         []string
	}{
		{"of its own name", "large.arm64-gcc12-large.o", defaults(), []string{"sdt_large___call GLOBAL undefined DEFAULT"}},
		{"hidden where records hold distances", "large.arm64-gcc12-large.o", relative, []string{"sdt_large___call GLOBAL undefined HIDDEN"}},
		{"one that the object refers to already", "existing.arm64-gcc12-O2.o", defaults(), []string{
			"sdt_existing___new GLOBAL undefined DEFAULT", "sdt_existing___probe GLOBAL undefined DEFAULT", "sdt_existing___weak WEAK undefined DEFAULT"}},
		{"one that the object defines", "existing.amd64-gcc12-define.o", defaults(), []string{
			"sdt_existing___new GLOBAL undefined DEFAULT", "sdt_existing___probe GLOBAL defined DEFAULT", "sdt_existing___weak WEAK undefined DEFAULT"}},
		{"one that is local", "existing.amd64-clang19-static.o", defaults(), []string{
			"sdt_existing___new GLOBAL undefined DEFAULT", "sdt_existing___probe LOCAL defined DEFAULT", "sdt_existing___weak WEAK undefined DEFAULT"}},
		{"stubs that the object defines stay", "defined.amd64-clang19-O2.o", defaults(), []string{
			"__dtrace_isenabled_defined___global GLOBAL defined DEFAULT", "__dtrace_probe_defined___global GLOBAL defined DEFAULT",
			"__dtrace_probe_defined___weak WEAK defined DEFAULT", "sdt_defined___global GLOBAL undefined DEFAULT",
			"sdt_defined___not GLOBAL undefined DEFAULT", "sdt_defined___weak GLOBAL undefined DEFAULT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := apply(t, c.object, c.opts)
			expect.Equal(t, c.want, sorted(got))
		})
	}
}

func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }

// Zero Options convert as the default ones, and so do those that only say something else.
func TestZeroOptionsAreTheDefaults(t *testing.T) {
	convert := func(opts patch.Options) []byte {
		t.Helper()
		data := objects.Read(t, "calls.amd64-gcc12-O2.o")
		out, err := patch.Convert(objects.Open(t, data), opts)
		if err != nil || out == nil {
			t.Fatalf("%+v: converted to %v, %v", opts, out, err)
		}
		var converted bytes.Buffer
		expect.OK(t, out.Write(&converted, bytes.NewReader(data)))
		return converted.Bytes()
	}
	want := convert(patch.Options{Target: patch.LinuxProgram})
	if !bytes.Equal(convert(patch.Options{}), want) {
		t.Error("zero options make another object")
	}
	if bytes.Contains(convert(patch.Options{DropRelocations: true}), []byte("__dtrace_")) {
		t.Error("a stub is left")
	}
	if (patch.Names{}).IsStub("__dtrace_probe_x") != patch.DefaultNames().IsStub("__dtrace_probe_x") {
		t.Error("no names are not the default ones")
	}
}

// convertFrom returns what Convert makes of a file, nil where it leaves it as it is.
func convertFrom(in *failing.File, opts patch.Options) (result []byte, warnings int, err error) {
	o, err := elfreloc.Open(in, in.Size(), "a.o")
	if err != nil {
		return nil, 0, err
	}
	plan, err := patch.Examine(o, opts)
	if err != nil {
		return nil, 0, err
	}
	out, err := plan.Output()
	if err != nil || out == nil {
		return nil, 0, err
	}
	result, err = io.ReadAll(io.NewSectionReader(out.Reader(in), 0, out.Size))
	return result, len(plan.Warnings), err
}

// failEachRead converts an object as often as a conversion reads from it, and returns the result.
func failEachRead(t *testing.T, name string, data []byte, opts patch.Options) []byte {
	t.Helper()
	in := failing.New(data, 0)
	want, warnings, refused := convertFrom(in, opts)
	for n := 1; n <= in.Reads; n++ {
		got, warned, err := convertFrom(failing.New(data, n), opts)
		switch {
		case refused == nil && err != nil:
			if !errors.Is(err, failing.Err) {
				t.Errorf("%s: read %d of %d fails, which does not tell it: %v", name, n, in.Reads, err)
			}
		case refused != nil && err == nil:
			t.Errorf("%s: converted, as read %d of %d fails", name, n, in.Reads)
		case warned == warnings && !bytes.Equal(want, got):
			t.Errorf("%s: read %d of %d fails, and nothing tells so", name, n, in.Reads)
		}
	}
	return want
}

// TestEachReadMayFail lets each read of a conversion fail in turn. The conversion fails then, or
// says so in a warning, or does not need what was to be read.
func TestEachReadMayFail(t *testing.T) {
	names := slices.Concat(objects.OfEachMachine, []string{
		"gotload.amd64-gcc12-noplt.o", "large.amd64-gcc12-large.o", "locals.amd64-gcc12-O2.o", "flow.amd64-gcc12-far.o",
		"thunk.amd64-gcc12-tails.o", "returnsites.amd64-gcc12-as.o",
		"mixed.amd64-clang19-lld19.o", "nopsmerged.amd64-gcc12-bfd.o", "localtwice.amd64-gcc12-bfd.o",
	})
	for _, c := range []struct {
		name string
		opts patch.Options
	}{
		{"pairs", patch.Options{FixedLayout: true}},
		{"notes", patch.Options{Notes: patch.WithNotes, DTrace: true, AllSemaphores: true}},
		{"freebsd", patch.Options{Layout: linkerset.Layout{Format: linkerset.FreeBSD, Name: "mine"}, DropRelocations: true}},
		{"dof", patch.Options{DTraceForms: true, NoRecords: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range names {
				data := objects.Read(t, name)
				after := failEachRead(t, name, data, c.opts)
				if after != nil {
					failEachRead(t, name+" once more", after, c.opts)
				}
			}
		})
	}
}

// Calls whose relocations cannot be read are not passed over.
func TestRelocationsOfUnknownTypeAreRefused(t *testing.T) {
	const androidRELA = 0x60000002
	data := objects.Read(t, "large.amd64-clang19-crel.o")
	sec := objects.Section(t, objects.Open(t, data), ".crel.text")
	header := data[int(binary.LittleEndian.Uint64(data[40:]))+64*sec:]
	binary.LittleEndian.PutUint32(header[4:], androidRELA)
	expect.Equal(t, "a.o: .crel.text: relocations of unknown type 0x60000002 apply to .text",
		expect.Failure(patch.Find(objects.Open(t, data), nil, defaults())))
}

// Relocations of a byte each claim more references than there can be: that is one error, and
// no refusal of each.
func TestMoreReferencesThanHaveRoomAreRefused(t *testing.T) {
	data := objects.Read(t, "large.amd64-clang19-crel.o")
	o := objects.Open(t, data)
	sec := objects.Section(t, o, ".crel.text")
	text := o.Sections[o.Sections[sec].Info]
	rels := expect.Value(o.RelocSections())(t)
	var stub elfreloc.Relocation
	expect.OK(t, o.EachRelocation(rels[0], func(i int, r elfreloc.Relocation) error {
		stub = r
		return nil
	}))
	const entries = 1000
	crel := []byte{0x84 | entries<<3&0x7f, entries >> 4, 1<<3 | 0b111, byte(stub.Sym), byte(stub.Type), 0x7c}
	crel = append(crel, bytes.Repeat([]byte{0}, entries-1)...) // the same again
	header := data[int(binary.LittleEndian.Uint64(data[40:]))+64*sec:]
	binary.LittleEndian.PutUint64(header[24:], uint64(len(data)))
	binary.LittleEndian.PutUint64(header[32:], uint64(len(crel)))
	expect.Equal(t, fmt.Sprintf("a.o: .crel.text: more than %d references to stubs in %d bytes", text.Size/4+1, text.Size),
		expect.Failure(patch.Find(objects.Open(t, append(data, crel...)), nil, defaults())))
}

// planWith is planOf of an object some bytes of which are others.
func planWith(t *testing.T, name, old, new string) *patch.Plan {
	t.Helper()
	data := bytes.ReplaceAll(objects.Read(t, name), []byte(old), []byte(new))
	o := objects.Open(t, data)
	scan := expect.Value(patch.Find(o, machines.Lookup(o.ABI()), defaults()))(t)
	return expect.Value(patch.NewPlan(scan))(t)
}

// What mapping symbols call data is not code, even where a machine would take it.
func TestSitesInDataWithinCodeAreRefused(t *testing.T) {
	for _, name := range []string{"calls.arm64-gcc12-O2.o", "calls.riscv64-clang19-O0.o"} {
		sites := len(planWith(t, name, "\x00$x\x00", "\x00$x\x00").Sites)
		plan := planWith(t, name, "\x00$x\x00", "\x00$d\x00")
		if sites == 0 || len(plan.Sites) != 0 || len(plan.Refused) != sites {
			t.Fatalf("%s: %d of %d sites are refused", name, len(plan.Refused), sites)
		}
		for _, r := range plan.Refused {
			var refusal *arch.Refusal
			const want = "the stub's address is stored in data within code; do not take the stub's address"
			if !errors.As(r.Err, &refusal) || !refusal.Address || r.Err.Error() != want {
				t.Errorf("%s: got %v", name, r.Err)
			}
		}
	}
}

// Other letters, and symbols that only look like mapping symbols, make no difference.
func TestOtherMappingSymbolsChangeNothing(t *testing.T) {
	const name = "calls.arm64-gcc12-O2.o"
	sites := len(planWith(t, name, "\x00$x\x00", "\x00$x\x00").Sites)
	for _, symbol := range []string{"\x00$t\x00", "\x00$q\x00", "\x00_d\x00", "\x00d$\x00"} {
		if plan := planWith(t, name, "\x00$x\x00", symbol); len(plan.Sites) != sites || len(plan.Refused) != 0 {
			t.Errorf("%q: %d sites of %d", symbol, len(plan.Sites), sites)
		}
	}
}

// The relocations of a section of code may be in two sections. Each site is disabled with
// its own.
func TestTwoSectionsOfRelocations(t *testing.T) {
	data := objects.Read(t, "calls.amd64-clang19-O2.o")
	o := objects.Open(t, data)
	rels := expect.Value(o.RelocSections())(t)
	text := rels[0]
	var entries []byte
	e := expect.Value(o.Edit())(t)
	expect.OK(t, o.EachRelocation(text, func(i int, r elfreloc.Relocation) error {
		if i%2 == 0 { // every other relocation moves to the new section, and leaves one that does nothing
			for _, v := range []uint64{r.Offset, uint64(r.Sym)<<32 | uint64(r.Type), uint64(r.Addend)} {
				entries = binary.LittleEndian.AppendUint64(entries, v)
			}
			e.SetRelocation(text, i, elfreloc.Relocation{})
		}
		return nil
	}))
	symtab := int(o.Sections[text.Index].Link)
	added := e.AddSection(elfreloc.NewSection{Name: ".rela.more", Type: elf.SHT_PROGBITS, Entsize: 24, Align: 8, Data: entries, Link: symtab})
	data = objects.Save(t, e, data)
	header := data[binary.LittleEndian.Uint64(data[40:])+uint64(64*added):]
	binary.LittleEndian.PutUint32(header[4:], uint32(elf.SHT_RELA))
	binary.LittleEndian.PutUint32(header[44:], uint32(text.Target))

	got, want := codeRelocs(t, data), codeRelocs(t, objects.Read(t, "calls.amd64-clang19-O2.o"))
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Error(diff)
	}
}

// codeRelocs returns the relocations of code of an object that is converted, but for those that
// do nothing, in order.
func codeRelocs(t *testing.T, data []byte) (all []string) {
	t.Helper()
	out := expect.Value(patch.Convert(objects.Open(t, data), defaults()))(t)
	result := expect.Value(objects.Assemble(out, data))(t)
	o := objects.Open(t, result)
	syms := expect.Value(o.Symbols())(t)
	expect.OK(t, o.EachRelocationOf((*elfreloc.Section).Executable, func(target int, r elfreloc.Relocation) error {
		if typ := elf.R_X86_64(r.Type); typ != elf.R_X86_64_NONE {
			all = append(all, fmt.Sprintf("%s+%#x %v %s%+d", o.Sections[target].Name, r.Offset, typ, syms.Name(int(r.Sym)), r.Addend))
		}
		return nil
	}))
	slices.Sort(all)
	return all
}

// FreeBSD's layout has the forms of --stapsdt where a breakpoint goes, at calls and tail
// calls of probes, and those of the other layouts at is-enabled tests, which load no
// semaphore there. On machines where a site is a whole instruction all forms are the same.
func TestFreeBSDFormsAreArmable(t *testing.T) {
	compared, different := 0, 0
	for _, f := range objects.ELF(t, "calls.") {
		if machines.Lookup(objects.Open(t, f.Data).ABI()) == nil {
			continue
		}
		plain := planOf(t, f.Name, patch.Options{FixedLayout: true})
		freebsd := planOf(t, f.Name, patch.Options{Layout: linkerset.Layout{Format: linkerset.FreeBSD}})
		stapsdt := planOf(t, f.Name, patch.Options{FixedLayout: true, Notes: patch.WithNotes})
		if len(stapsdt.Refused) > 0 { // tests through registers, which have no room for a semaphore
			continue
		}
		for i := range freebsd.Sites {
			s, want, from := freebsd.Sites[i], plain.Sites[i], "plain"
			if s.Stub.Kind == arch.Probe {
				want, from = stapsdt.Sites[i], "--stapsdt"
			}
			if !bytes.Equal(s.Change.New, want.Change.New) || s.Change.RecordedOffset != want.Change.RecordedOffset || s.Change.Target != want.Change.Target {
				t.Errorf("%s: %+v\nis not the form of %s: %+v", f.Name, s.Change, from, want.Change)
			}
			compared++
			if !bytes.Equal(s.Change.New, plain.Sites[i].Change.New) {
				different++
				if s.Change.New[s.Change.RecordedOffset-s.Change.Site.Offset] != 0x90 {
					t.Errorf("%s: %x has no nop at its record", f.Name, s.Change.New)
				}
			}
		}
	}
	if compared < 100 || different < 20 {
		t.Errorf("%d sites compared, %d with a form of their own", compared, different)
	}
}
