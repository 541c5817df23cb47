package machines_test

import (
	"debug/elf"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

const little, big = elf.ELFDATA2LSB, elf.ELFDATA2MSB

func TestLookupTellsMachinesAndClassesApart(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		class   elf.Class
		data    elf.Data
		flags   uint32
		want    string // "" for none
	}{
		{elf.EM_X86_64, elf.ELFCLASS64, little, 0, "amd64"},
		{elf.EM_AARCH64, elf.ELFCLASS64, little, 0, "arm64"},
		{elf.EM_AARCH64, elf.ELFCLASS64, big, 0, "arm64"},
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0x43, "loong64"}, // double floats
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0x41, "loong64"}, // soft floats
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0, "loong64"},    // images of mold 2
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0x03, ""},        // version 0 of the ABI of objects
		{elf.EM_LOONGARCH, elf.ELFCLASS32, little, 0x43, ""},        // ILP32
		{elf.EM_PPC64, elf.ELFCLASS64, big, 0, "ppc64"},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 1, "ppc64"},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 2, "ppc64"},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 3, ""},
		{elf.EM_PPC64, elf.ELFCLASS64, little, 0, "ppc64le"},
		{elf.EM_PPC64, elf.ELFCLASS64, little, 1, ""}, // ELFv1
		{elf.EM_PPC64, elf.ELFCLASS64, little, 2, "ppc64le"},
		{elf.EM_RISCV, elf.ELFCLASS64, little, 5, "riscv64"}, // with C, and double floats
		{elf.EM_X86_64, elf.ELFCLASS32, little, 0, ""},       // x32
		{elf.EM_X86_64, elf.ELFCLASS64, big, 0, ""},
		{elf.EM_AARCH64, elf.ELFCLASS32, little, 0, ""}, // ILP32
		{elf.EM_RISCV, elf.ELFCLASS32, little, 0, ""},   // RV32
		{elf.EM_ARM, elf.ELFCLASS32, little, 0x5000400, "arm"},
		{elf.EM_ARM, elf.ELFCLASS32, big, 0x5000000, "arm"},
		{elf.EM_ARM, elf.ELFCLASS32, big, 0x5800000, "arm"}, // BE8
		{elf.EM_ARM, elf.ELFCLASS32, little, 0x4000000, ""}, // EABI version 4
		{elf.EM_SPARC, elf.ELFCLASS32, big, 0, ""},
		{elf.EM_NONE, elf.ELFCLASSNONE, elf.ELFDATANONE, 0, ""},
	} {
		got := ""
		m := machines.Lookup(elfreloc.ABI{Machine: c.machine, Class: c.class, Data: c.data, Flags: c.flags})
		if m != nil {
			got = m.Traits().Name
		}
		expect.Equal(t, c.want, got, "%v of %v, %v and flags %#x", c.machine, c.class, c.data, c.flags)
	}
}

// What is not known is named as far as it differs from what is.
func TestUnsupported(t *testing.T) {
	for want, got := range map[string]string{
		"EM_SPARC of class ELFCLASS32":                                  machines.Unsupported(elfreloc.ABI{Machine: elf.EM_SPARC, Class: elf.ELFCLASS32, Data: big, Flags: 3}),
		"EM_RISCV of class ELFCLASS32":                                  machines.Unsupported(elfreloc.ABI{Machine: elf.EM_RISCV, Class: elf.ELFCLASS32, Data: little, Flags: 4}),
		"EM_LOONGARCH of class ELFCLASS64, ELFDATA2LSB and e_flags 0x3": machines.Unsupported(elfreloc.ABI{Machine: elf.EM_LOONGARCH, Class: elf.ELFCLASS64, Data: little, Flags: 3}),
		"EM_ARM of class ELFCLASS32, ELFDATA2LSB and e_flags 0x4000000": machines.Unsupported(elfreloc.ABI{Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Data: little, Flags: 0x4000000}),
		"EM_X86_64 of class ELFCLASS64, ELFDATA2MSB and e_flags 0x0":    machines.Unsupported(elfreloc.ABI{Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Data: big, Flags: 0}),
	} {
		expect.Equal(t, want, got)
	}
}

func TestConventionsOfMachinesWithAndWithoutProbes(t *testing.T) {
	for _, c := range []struct {
		machine     elf.Machine
		class       elf.Class
		data        elf.Data
		flags       uint32
		mode        uint64
		descriptors string
		unwind      int
	}{
		{elf.EM_ARM, elf.ELFCLASS32, little, 0x5000000, 1, "", 1},
		{elf.EM_ARM, elf.ELFCLASS32, big, 0x5000000, 1, "", 1},
		{elf.EM_MIPS, elf.ELFCLASS64, little, 0, 1, "", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 0, 0, ".opd", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 1, 0, ".opd", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 2, 0, "", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, little, 2, 0, "", 0},
		{elf.EM_X86_64, elf.ELFCLASS64, little, 0, 0, "", 1},
		{elf.EM_X86_64, elf.ELFCLASS32, little, 0, 0, "", 1},
		{elf.EM_SPARC, elf.ELFCLASS32, big, 0, 0, "", 0},
	} {
		got := machines.Conventions(elfreloc.ABI{Machine: c.machine, Class: c.class, Data: c.data, Flags: c.flags})
		if got.Mode != c.mode || got.Descriptors != c.descriptors || len(got.UnwindTypes) != c.unwind {
			t.Errorf("%v of %v, %v and flags %#x: got %+v", c.machine, c.class, c.data, c.flags, got)
		}
	}
}

func readRelocs(t *testing.T, o *elfreloc.Object, rs elfreloc.RelocSection) (all []elfreloc.Relocation) {
	t.Helper()
	err := o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
		all = append(all, elfreloc.Relocation{Offset: r.Offset, Type: r.Type, Addend: r.Addend, Implicit: r.Implicit})
		return nil
	})
	expect.OK(t, err)
	return all
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

// exceptions are where something of one machine is named outside of its directory, with
// what is named.
var exceptions = map[string]string{
	// The layout of relocations of mips64el is one of files, not of code.
	"elfreloc/object.go": "elf.EM_MIPS",
	// A name that compilers define by themselves where they compile for one.
	"internal/provider/preprocess/preprocess.go": "i386",
}

// hostFile names the machines that sdtconvert runs on, by what Go calls them.
const hostFile = "internal/supervise/filter_linux.go"

// A machine is a directory and a line: nothing else that is not a test names one. What would
// is a constant of its e_machine, a type of its relocations, its package, or its names.
func TestNothingElseNamesAMachine(t *testing.T) {
	root := filepath.Join("..", "..")
	directories := []string{"arch/machines"}
	packages := []string{}
	var words []string
	for _, m := range machines.All() {
		directories = append(directories, strings.TrimPrefix(packageOf(m), "sdtconvert/"))
		packages = append(packages, packageOf(m))
		words = append(words, m.Traits().Name)
		if symbol := m.Traits().ReturnThunk.Symbol; symbol != "" {
			words = append(words, symbol)
		}
	}
	files, used := 0, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case entry.IsDir() && (slices.Contains(directories, name) || entry.Name() == "testdata" || entry.Name() == "testkit" || strings.HasPrefix(entry.Name(), ".git")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"), name == hostFile:
			return nil
		}
		files++
		for what := range named(string(disk.Read(t, path)), packages, words) {
			expect.Equal(t, what, exceptions[name], "%s", name)
			used[name] = true
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files were read: %v", files, err)
	}
	for name := range exceptions {
		if !used[name] {
			t.Errorf("%s needs to be no exception", name)
		}
	}
}

// namers find what names a machine in a file without its comments: constants of debug/elf that are of one machine, and
// strings.
var (
	ofMachine = regexp.MustCompile(`\belf\.(E[MF]_\w+|R_[A-Z0-9]+_?\w*|(SHT|PT|DT)_(MIPS|RISCV|ARM|AARCH64|S390|PPC)\w+)`)
	ofAll     = regexp.MustCompile(`^elf\.(EM_NONE|R_(INFO|SYM|TYPE)(32|64)?)$`)
	text      = regexp.MustCompile("\"(\\\\.|[^\"\\\\\n])*\"|`[^`]*`")
	comment   = regexp.MustCompile(`(?m)^\s*//.*$|\s// .*$`)
)

// named returns what of a machine a file names.
func named(source string, packages, words []string) map[string]bool {
	all := map[string]bool{}
	source = comment.ReplaceAllString(source, "")
	for _, constant := range ofMachine.FindAllString(source, -1) {
		all[constant] = !ofAll.MatchString(constant)
	}
	for _, literal := range text.FindAllString(source, -1) {
		literal = literal[1 : len(literal)-1]
		all[literal] = slices.Contains(packages, literal)
		for _, word := range words {
			if literal == word || strings.HasPrefix(word, "__") && strings.Contains(literal, word) {
				all[word] = true
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, names bool) bool { return !names })
	return all
}
