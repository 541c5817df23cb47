package linkerset_test

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/failing"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// site is what a record says, and what a plan wants it to say.
type site struct {
	Kind, Section string
	Offset        uint64
}

func planned(p *patch.Plan) []site {
	var out []site
	for _, s := range p.Sites {
		out = append(out, site{kindName(s.Stub.Kind == 0), p.Scan.Object.Sections[s.Relocs.Target].Name, s.Change.RecordedOffset})
	}
	return out
}

func kindName(probe bool) string {
	if probe {
		return "probe"
	}
	return "enabled"
}

// read reads records that have no faults.
func read(t *testing.T, l linkerset.Layout, o *elfreloc.Object, m arch.Machine) ([]linkerset.Entry, *linkerset.Probes) {
	t.Helper()
	im := expect.Value(image.Open(o, m))(t)
	entries, faults, err := l.Read(im)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	return entries, linkerset.NewProbes(im, "sdt_")
}

// What Add writes for every committed object, Read finds again.
func TestReadFindsWhatAddWrote(t *testing.T) {
	for _, l := range everyLayout(t) {
		n := 0
		for _, file := range objects.ELF(t, "") {
			after, plan := convert(t, file.Data, l, false)
			if plan == nil {
				continue
			}
			n++
			o, m := open(t, after)
			entries, probes := read(t, l, o, m)
			slices.SortStableFunc(entries, func(a, b linkerset.Entry) int { return a.Address.Compare(b.Address) })
			var got []site
			for i, e := range entries {
				got = append(got, site{kindName(e.Kind == 0), o.Sections[e.Address.Section].Name, e.Address.Offset})
				probe := expect.Value(probes.Lookup(e.Probe))(t)
				if want := plan.Sites[i].Stub.ID; probe.ID != want {
					t.Errorf("%s: record %d is of probe %q, want %q", file.Name, i, probe.ID, want)
				}
			}
			expect.Equal(t, planned(plan), got, "%s in %s", file.Name, l.Format)
		}
		if n == 0 {
			t.Fatal("no object was converted")
		}
	}
}

func TestRecordsOfGroupedTextJoinItsGroup(t *testing.T) {
	for _, l := range everyLayout(t) {
		after, _ := convert(t, objects.Read(t, "comdat.amd64-gcc12-O2.o"), l, false)
		o, m := open(t, after)
		groups := expect.Value(o.Groups())(t)
		entries, _ := read(t, l, o, m)
		grouped := 0
		for _, e := range entries {
			if groups[e.Record.Section] != groups[e.Address.Section] || o.Sections[e.Record.Section].Flags&elf.SHF_GROUP != o.Sections[e.Address.Section].Flags&elf.SHF_GROUP {
				t.Errorf("%s: records of %s are in group %d, it in %d", l.Format, o.Sections[e.Address.Section].Name, groups[e.Record.Section], groups[e.Address.Section])
			}
			if groups[e.Address.Section] != 0 {
				grouped++
			}
		}
		if grouped == 0 || grouped == len(entries) {
			t.Errorf("%s: %d of %d records are in groups", l.Format, grouped, len(entries))
		}
	}
}

// One section of records is of one section of text.
func TestRecordSectionsAreOfOneText(t *testing.T) {
	for _, l := range everyLayout(t) {
		after, _ := convert(t, objects.Read(t, "calls.amd64-gcc12-sections.o"), l, false)
		o, m := open(t, after)
		entries, _ := read(t, l, o, m)
		of := map[int]int{}
		for _, e := range entries {
			if text, ok := of[e.Record.Section]; ok && text != e.Address.Section {
				t.Errorf("%s: section %d has records of %s and %s", l.Format, e.Record.Section, o.Sections[text].Name, o.Sections[e.Address.Section].Name)
			}
			of[e.Record.Section] = e.Address.Section
		}
		if len(of) < 10 {
			t.Errorf("%s: %d sections of records", l.Format, len(of))
		}
	}
}

func TestReadNeedsSoundRecords(t *testing.T) {
	outside := func(e *elfreloc.Edit) uint32 {
		return e.AddSymbol(elfreloc.Symbol{Name: "outside", Bind: elf.STB_GLOBAL})
	}
	for _, c := range []struct {
		format string
		name   string
		change func(e *elfreloc.Edit, records int, rs elfreloc.RelocSection)
		want   string
	}{
		{"pairs", "no relocation", func(e *elfreloc.Edit, _ int, rs elfreloc.RelocSection) { e.DeleteRelocation(rs, 1) },
			"a.o: sdt_instances_set+0x0: a record without a site"},
		{"pairs", "a site in data", func(e *elfreloc.Edit, records int, rs elfreloc.RelocSection) {
			e.SetRelocation(rs, 1, elfreloc.Relocation{Offset: 8, Sym: e.SectionSymbol(records), Type: uint32(elf.R_X86_64_64)})
		}, "a.o: sdt_instances_set+0x0: a record of a site that is not in code, at sdt_instances_set+0x0"},
		{"pairs", "half a record", func(e *elfreloc.Edit, records int, _ elfreloc.RelocSection) { e.Append(records, make([]byte, 4)) },
			"a.o: sdt_instances_set: 52 bytes of records of 16 bytes"},
		{"freebsd", "no pointer", func(e *elfreloc.Edit, _ int, rs elfreloc.RelocSection) { e.DeleteRelocation(rs, 0) },
			"a.o: set_sdt_instances_set+0x0: a pointer to no record"},
		{"freebsd", "a pointer to elsewhere", func(e *elfreloc.Edit, _ int, rs elfreloc.RelocSection) {
			e.SetRelocation(rs, 0, elfreloc.Relocation{Sym: outside(e), Type: uint32(elf.R_X86_64_64)})
		}, "a.o: set_sdt_instances_set+0x0: a pointer to no record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := parse(t, c.format, "")
			after, _ := convert(t, objects.Read(t, "gotload.amd64-gcc12-noplt.o"), l, false)
			o, m := open(t, changedRecords(t, after, c.change))
			im := expect.Value(image.Open(o, m))(t)
			_, faults, got := l.Read(im)
			if len(faults) == 1 && got == nil {
				got = faults[0]
			}
			expect.Equal(t, c.want, fmt.Sprint(got))
		})
	}
}

func changedRecords(t *testing.T, data []byte, change func(*elfreloc.Edit, int, elfreloc.RelocSection)) []byte {
	t.Helper()
	o, _ := open(t, data)
	e := expect.Value(o.Edit())(t)
	rels := expect.Value(o.RelocSections())(t)
	for _, rs := range rels {
		if strings.HasSuffix(o.Sections[rs.Target].Name, "sdt_instances_set") {
			change(e, rs.Target, rs)
		}
	}
	return objects.Save(t, e, data)
}

// Linkers that shorten code move symbols with it, and do not change addends.
func TestRecordsOfRelaxedCodeReferToSymbols(t *testing.T) {
	machines := map[string]int{}
	for _, l := range everyLayout(t) {
		for _, file := range objects.ELF(t, "calls.", "small.", "existing.") {
			if _, m := open(t, file.Data); m == nil || !m.Traits().Relaxes {
				continue
			}
			after, plan := convert(t, file.Data, l, false)
			if plan == nil {
				continue
			}
			o, m := open(t, after)
			entries, _ := read(t, l, o, m)
			records := map[int]bool{}
			for _, e := range entries {
				records[e.Record.Section] = true
			}
			syms := expect.Value(o.Symbols())(t)
			for _, rs := range expect.Value(o.RelocSections())(t) {
				if !records[rs.Target] {
					continue
				}
				expect.OK(t, o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
					sym := syms.At(int(r.Sym))
					if sym.Section > 0 && o.Sections[sym.Section].Executable() && (r.Addend != 0 || sym.Type == elf.STT_SECTION) {
						t.Errorf("%s in %s: a site is %q%+d", file.Name, l.Format, sym.Name, r.Addend)
					}
					machines[m.Traits().Name]++
					return nil
				}))
			}
		}
	}
	if len(machines) < 2 {
		t.Errorf("records of %v", machines)
	}
}

// readAll lists what the records of an object say, what earlier conversions left, and what keeps
// records alive.
func readAll(in *failing.File, l linkerset.Layout) (all []string, err error) {
	add := func(v any) { all = append(all, fmt.Sprintf("%+v", v)) }
	o, err := elfreloc.Open(in, in.Size(), "a.o")
	if err != nil {
		return nil, err
	}
	m := machines.Lookup(o.ABI())
	im, err := image.Open(o, m)
	if err != nil {
		return nil, err
	}
	entries, faults, err := l.Read(im)
	if err != nil || len(faults) > 0 {
		return nil, fmt.Errorf("%v %w", faults, err)
	}
	probes := linkerset.NewProbes(im, "sdt_")
	for _, e := range entries {
		probe, err := probes.Lookup(e.Probe)
		if err != nil {
			return nil, err
		}
		add([]any{e, probe})
	}
	set, err := probes.Set()
	if err != nil {
		return nil, err
	}
	found, err := l.CheckEarlier(o)
	if err != nil {
		return nil, err
	}
	symbol, err := l.ProbeSymbol(o)
	if err != nil {
		return nil, err
	}
	anchored, err := linkerset.AnchoredSections(o, m)
	add([]any{set, found, symbol, anchored})
	return all, err
}

// TestEachReadMayFail lets each read fail in turn. Then there is an error, or what was to be read is
// not needed.
func TestEachReadMayFail(t *testing.T) {
	for _, name := range append(objects.OfEachMachine, "locals.amd64-gcc12-O2.o", "thunk.amd64-gcc12-tails.o") {
		for _, l := range everyLayout(t) {
			after, plan := convert(t, objects.Read(t, name), l, false)
			if plan == nil {
				continue
			}
			in := failing.New(after, 0)
			want, err := readAll(in, l)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for n := 1; n <= in.Reads; n++ {
				got, err := readAll(failing.New(after, n), l)
				if err == nil && !cmp.Equal(want, got) {
					t.Errorf("%s, %v: read %d of %d fails, and nothing tells so", name, l, n, in.Reads)
				}
			}
		}
	}
}

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
	scan, err := patch.Find(o, m, patch.Options{Layout: l, FixedLayout: true, DropRelocations: drop})
	if err != nil || m == nil {
		return nil, nil
	}
	plan, err := patch.NewPlan(scan)
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
