package patch_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// Calls whose relocations cannot be read are not passed over.
func TestRelocationsOfUnknownTypeAreRefused(t *testing.T) {
	const androidRELA = 0x60000002
	data := objects.Read(t, "large.amd64-clang19-crel.o")
	sec := objects.Section(t, objects.Open(t, data), ".crel.text")
	header := data[int(binary.LittleEndian.Uint64(data[40:]))+64*sec:]
	binary.LittleEndian.PutUint32(header[4:], androidRELA)
	expect.Equal(t, "a.o: .crel.text: relocations of unknown type 0x60000002 apply to .text",
		expect.Failure(patch.Find(objects.Open(t, data), nil, patch.DefaultOptions().Names)))
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
		expect.Failure(patch.Find(objects.Open(t, append(data, crel...)), nil, patch.DefaultOptions().Names)))
}

// planWith is planOf of an object some bytes of which are others.
func planWith(t *testing.T, name, old, new string) *patch.Plan {
	t.Helper()
	data := bytes.ReplaceAll(objects.Read(t, name), []byte(old), []byte(new))
	o := objects.Open(t, data)
	scan := expect.Value(patch.Find(o, machines.Lookup(o.ABI()), patch.DefaultNames()))(t)
	return expect.Value(patch.NewPlan(scan, defaults()))(t)
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
		plain := planOf(t, f.Name, patch.Options{})
		freebsd := planOf(t, f.Name, patch.Options{Layout: linkerset.Layout{Format: linkerset.FreeBSD}})
		stapsdt := planOf(t, f.Name, patch.Options{Stapsdt: true})
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
