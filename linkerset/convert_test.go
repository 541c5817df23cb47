package linkerset_test

import (
	"debug/elf"
	"fmt"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

func parse(t testing.TB, format, name string) linkerset.Layout {
	t.Helper()
	return expect.Value(linkerset.ParseLayout(format, name))(t)
}

// every layout, with the section names of its own and with given ones.
func everyLayout(t testing.TB) []linkerset.Layout {
	var all []linkerset.Layout
	for _, name := range []string{"", "mine"} {
		for _, format := range []string{"pairs", "relative", "freebsd"} {
			all = append(all, parse(t, format, name))
		}
	}
	return all
}

func open(t testing.TB, data []byte) (*elfreloc.Object, arch.Machine) {
	t.Helper()
	o := objects.Open(t, data)
	return o, machines.Lookup(o.ABI())
}

// convert converts an object, and returns the plan too. It is nil when the
// object has something that cannot be converted, or nothing.
func convert(t testing.TB, data []byte, l linkerset.Layout, drop bool) ([]byte, *patch.Plan) {
	t.Helper()
	o, m := open(t, data)
	scan, err := patch.Find(o, m, patch.DefaultNames())
	if err != nil || m == nil {
		return nil, nil
	}
	plan, err := patch.NewPlan(scan, patch.Options{Names: patch.DefaultNames(), Layout: l, ProbePrefix: "sdt_", DropRelocations: drop})
	if err != nil || len(plan.Refused) > 0 || len(plan.Sites) == 0 {
		return nil, nil
	}
	e := expect.Value(o.Edit())(t)
	if err := plan.Apply(e); err != nil {
		return nil, nil // several local probe objects of one name
	}
	result := objects.Save(t, e, data)
	return result, plan
}

// spell shows a section of records as debug/elf reads it, and its relocations,
// a line each. Symbols of sections are shown by their names in brackets.
func spell(t testing.TB, f *elf.File, s *elf.Section) []string {
	t.Helper()
	syms := expect.Value(f.Symbols())(t)
	var lines []string
	for _, rel := range f.Sections {
		if rel.Type != elf.SHT_RELA || f.Sections[rel.Info] != s {
			continue
		}
		data := expect.Value(rel.Data())(t)
		for ; len(data) >= 24; data = data[24:] {
			info := f.ByteOrder.Uint64(data[8:])
			sym := syms[info>>32-1]
			name := sym.Name
			if elf.ST_TYPE(sym.Info) == elf.STT_SECTION {
				name = "[" + f.Sections[sym.Section].Name + "]"
			}
			lines = append(lines, spellReloc(f.ByteOrder.Uint64(data), relocName(f.Machine, uint32(info)), name, int64(f.ByteOrder.Uint64(data[16:]))))
		}
	}
	return lines
}

func relocName(m elf.Machine, typ uint32) string {
	switch m {
	case elf.EM_AARCH64:
		return elf.R_AARCH64(typ).String()
	case elf.EM_RISCV:
		return elf.R_RISCV(typ).String()
	}
	return elf.R_X86_64(typ).String()
}

func spellReloc(off uint64, typ, symbol string, addend int64) string {
	return fmt.Sprintf("%#x %s %s%+d", off, typ, symbol, addend)
}
