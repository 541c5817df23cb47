package assembly

import (
	"bytes"
	"debug/elf"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// implicit is a machine whose relocations have no addends.
type implicit struct{ arch.Machine }

func (m implicit) Traits() *arch.Traits {
	t := *m.Machine.Traits()
	t.Rela = false
	return &t
}

// Where relocations have no addends, the fields have them.
func TestObjectPutsAddendsWhereTheMachineHasThem(t *testing.T) {
	data := objects.Read(t, "calls.amd64-gcc12-O2.o")
	like := objects.Open(t, data)
	for _, m := range []arch.Machine{machines.Lookup(like.ABI()), implicit{machines.Lookup(like.ABI())}} {
		a := expect.Value(NewObject(expect.Value(like.Empty(""))(t), m, "f"))(t)
		a.Section(Section{Name: ".data.a", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Align: 8})
		a.Zero(8)
		a.Label(".Lhere")
		a.Word(".Lhere", 16)
		a.Word("other", -1)
		out := expect.Value(a.Bytes())(t)
		o := expect.Value(elfreloc.Open(bytes.NewReader(out), int64(len(out)), "f.o"))(t)
		im := expect.Value(image.Open(o, m))(t)
		for i := range o.Sections {
			s := &o.Sections[i]
			if wrong := map[bool]elf.SectionType{true: elf.SHT_REL, false: elf.SHT_RELA}[m.Traits().Rela]; s.Type == wrong {
				t.Errorf("addends in relocations: %v, and a section %s", m.Traits().Rela, s.Name)
			}
			if s.Name != ".data.a" {
				continue
			}
			expect.Equal(t, image.Addr{Section: i, Offset: 24}, expect.Value(im.Word(image.Addr{Section: i, Offset: 8}))(t).Addr, "the first word")
			if r, err := im.Word(image.Addr{Section: i, Offset: 16}); err != nil || r.Symbol != "other" || int64(r.Addr.Offset) != -1 {
				t.Errorf("the second word refers to %+v, %v", r, err)
			}
		}
	}
}
