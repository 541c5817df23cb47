package machines_test

import (
	"debug/elf"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

func readRelocs(t *testing.T, o *elfreloc.Object, rs elfreloc.RelocSection) (all []elfreloc.Relocation) {
	t.Helper()
	err := o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
		all = append(all, elfreloc.Relocation{Offset: r.Offset, Type: r.Type, Addend: r.Addend, Implicit: r.Implicit})
		return nil
	})
	expect.OK(t, err)
	return all
}

// Each header is of one machine.
func TestHeadersOfMachines(t *testing.T) {
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		abis := m.Traits().ABIs
		if len(abis) == 0 {
			t.Fatal("no ABI")
		}
		for _, abi := range abis {
			if abi.Class != abis[0].Class || abi.Machine == elf.EM_NONE || abi.Flags&^abi.Mask != 0 {
				t.Errorf("got %+v", abi)
			}
			for _, data := range []elf.Data{elf.ELFDATA2LSB, elf.ELFDATA2MSB} {
				if abi.Data != elf.ELFDATANONE && abi.Data != data {
					continue
				}
				for _, flags := range []uint32{abi.Flags, abi.Flags | ^abi.Mask} {
					matching := 0
					for _, other := range machines.All() {
						if slices.ContainsFunc(other.Traits().ABIs, func(a arch.ABI) bool { return a.Matches(abi.Machine, abi.Class, data, flags) }) {
							matching++
						}
					}
					of := elfreloc.ABI{Machine: abi.Machine, Class: abi.Class, Data: data, Flags: flags}
					if got := machines.Lookup(of); got != m || matching != 1 {
						t.Errorf("%+v with flags %#x is of %d machines", abi, flags, matching)
					}
				}
			}
		}
	})
}

func TestTraitsAreComplete(t *testing.T) {
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		tr := m.Traits()
		word := map[elf.Class]int{elf.ELFCLASS32: 4, elf.ELFCLASS64: 8}[tr.ABIs[0].Class]
		check := func(ok bool, what string) {
			t.Helper()
			if !ok {
				t.Errorf("%s: %+v", what, tr)
			}
		}
		check(tr.WordSize() == word && (tr.Model.Long == word), "the data model is not of the class")
		check(m.Traits().DataReloc(tr.Word) == arch.DataReloc{Size: word}, "Word does not store a word")
		types := []uint32{tr.None, tr.Word, tr.LoadBase}
		names := 0
		for _, r := range tr.Relative {
			types = append(types, r.Type)
			if !r.Sub {
				names++
			}
		}
		check(names == 1 && !tr.Relative[0].Sub, "Relative names its target once, and first")
		types = append(types, tr.AlsoRelative...)
		slices.Sort(types)
		check(len(slices.Compact(types)) == 3+len(tr.Relative)+len(tr.AlsoRelative), "types of relocations are equal")
		check(tr.Site > 0 && tr.Branch > 0 && tr.Skip < tr.Site, "Sizes")
		check(slices.Contains(tr.Entries, 0) && slices.IsSorted(tr.Entries), "Entries")
		check((len(tr.Deletes) > 0) == tr.Relaxes, "Deletes without Relaxes, or the other way round")
		thunk := tr.ReturnThunk
		check(thunk.Symbol != "" || thunk.Sites == "" && thunk.Near == nil && thunk.Field == 0, "a nameless return thunk")
		for choice, want := range map[arch.ThunkChoice]string{{}: "", {Own: true}: thunk.Symbol, {Symbol: "thunk"}: "thunk"} {
			symbol, refused := tr.Thunk(choice)
			if none := thunk.Symbol == "" && choice != (arch.ThunkChoice{}); none {
				check(refused != nil && symbol == "", "Thunk refuses none")
			} else {
				check(refused == nil && symbol == want, "Thunk")
			}
		}
		check(tr.Features.Supported&tr.Features.LandingPad == tr.Features.LandingPad, "an unknown landing pad")
		check((tr.Features.Property != 0) == (tr.Features.Supported != 0), "promises without a property")
		check(len(tr.Breakpoints) > 0, "no breakpoint")
		for _, b := range tr.Breakpoints {
			check(len(b) > 0 && uint64(len(b)) <= tr.Site, "a breakpoint does not fit a site")
		}
		check(len(tr.Nops) > 0, "no nop")
		for _, b := range tr.Nops {
			check(strings.HasSuffix(asm(m, b), "nop"), "a nop that is none")
		}
		check(strings.Trim(tr.Mapping, "atdx") == "" && (tr.Mapping == "" || strings.Contains(tr.Mapping, "d")), "Mapping")
		check((tr.Pool == "") == (tr.PoolFix == ""), "Pool and PoolFix")
		check((tr.Descriptors == "") == (tr.Descriptor == nil), "function descriptors without one")
		check(len(tr.Arguments.Registers) > 0 || tr.Arguments.Stack != nil, "no arguments")
	})
}

// Names are readelf's, of the types that traits and cases have.
func TestRelocationNames(t *testing.T) {
	plain := regexp.MustCompile(`^R_[A-Z0-9]+_[A-Z0-9_]+$`)
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.names) == 0 {
			t.Error("the cases have none")
		}
		for typ, want := range c.names {
			expect.Equal(t, want, m.RelocName(typ), "type %d", typ)
		}
		tr := m.Traits()
		types := append([]uint32{tr.None, tr.Word, tr.LoadBase}, tr.Deletes...)
		for _, r := range tr.Relative {
			types = append(types, r.Type)
		}
		for _, typ := range types {
			if name := m.RelocName(typ); !plain.MatchString(name) {
				t.Errorf("type %d is %s", typ, name)
			}
		}
	})
}

func TestDataRelocations(t *testing.T) {
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.data) == 0 {
			t.Error("the cases have none")
		}
		for name, want := range c.data {
			typ, ok := c.types[name]
			if got := m.Traits().DataReloc(typ); !ok || got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		}
	})
}

// The cases have as many arguments as have a place, and one more.
func TestArguments(t *testing.T) {
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		forms, longest := map[arch.Form]bool{}, 0
		data := m.Traits().ABIs[0].Data
		if data == elf.ELFDATANONE {
			data = elf.ELFDATA2LSB
		}
		for _, a := range c.arguments {
			forms[a.form] = true
			longest = max(longest, len(a.sizes))
			if diff := cmp.Diff(a.want, strings.Join(m.Traits().Operands(a.form, data, a.sizes), " ")); diff != "" {
				t.Errorf("%v as %s: %s", a.sizes, formNames[a.form], diff)
			}
		}
		if !forms[arch.Call] || !forms[arch.Tail] || longest <= len(m.Traits().Arguments.Registers) {
			t.Error("the cases have no call, no tail call, or no more arguments than registers")
		}
		for i, r := range m.Traits().Arguments.Registers {
			if r[0] == "" || m.Traits().WordSize() == 8 && r[3] == "" {
				t.Errorf("register %d is %v", i, r)
			}
		}
	})
}
