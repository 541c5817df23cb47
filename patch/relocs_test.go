package patch_test

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

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
