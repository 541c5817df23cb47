package links

import (
	"debug/elf"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// makeStubs makes the object that a link of objects needs.
func makeStubs(t *testing.T, objects []string) string {
	t.Helper()
	return generate(t, "stubs.o", append([]string{"stubs"}, objects...)...)
}

// assembledStubs makes the same object by way of its source.
func assembledStubs(t *testing.T, c compiler, objects []string) string {
	t.Helper()
	return c.compile(t, generate(t, "stubs.s", append([]string{"stubs", "--asm"}, objects...)...))
}

// stubCombinations returns the ways in which made objects are linked.
func stubCombinations() []combination {
	native := every([]compiler{
		amd64Compiler(toolchains.GCC, "-O2", "-fcf-protection=full"), amd64Compiler(toolchains.Clang, "-Os", "-ffunction-sections"),
	}, []layout{pairs, relative32}, modes)
	var cross []compiler
	for _, m := range foreign {
		cross = append(cross, crossCompiler(m, toolchains.GCC, "-O2"), crossCompiler(m, toolchains.Clang, "-Os"))
	}
	return append(native, every(cross, []layout{pairs, relative32}, modes)...)
}

// TestStubs links the test program with what `sdtconvert stubs` makes instead of
// what a compiler makes of stubs.c and probes.c: unconverted it does the same as
// with those, and converted it has the records that they give.
func TestStubs(t *testing.T) {
	all := product.New(combinationDimensions...)
	for _, c := range stubCombinations() {
		all.Add(c.String(), c.values(), func(t *testing.T) {
			c.compiler.parallel(t, c.linker.Path)
			p := compileProgram(t, c.compiler, c.layout, c.mode.library)
			twin, err := c.mode.link(p, c.linker, nil, p.twin())
			if err != nil {
				t.Skipf("unconverted, with other stubs: %v", err)
			}
			want := twin.examine(t, c.compiler.machine)
			t.Run("unconverted", func(t *testing.T) {
				c.checkUnconverted(t, p)
			})
			t.Run("converted", func(t *testing.T) {
				objects := convertAll(t, p.probed, c.layout.flags()...)
				got := expect.Value(c.mode.link(p, c.linker, nil, append(objects, p.show, makeStubs(t, objects))))(t)
				got.check(t, c.comparable(), c.layout, want)
			})
		})
	}
	all.Run(t)
}

// checkUnconverted runs the program with made stubs, and looks for their calls.
func (c combination) checkUnconverted(t *testing.T, p program) {
	m := c.compiler.machine
	ways := []string{assembledStubs(t, c.compiler, p.probed)}
	if product.All() { // else the converted program alone has the object, which says the same
		ways = append(ways, makeStubs(t, p.probed))
	}
	for _, stubs := range ways {
		got := expect.Value(c.mode.link(p, c.linker, nil, append(slices.Clone(p.probed), p.idle, stubs)))(t)
		expect.Equal(t, expected(t), expect.Value(run(m, got.exe))(t).stdout, "%s prints", got.exe)
		im := openImage(t, got.image)
		for _, s := range im.symbols {
			if stubName.MatchString(s.Name) && elf.ST_BIND(s.Info) != elf.STB_LOCAL && elf.ST_VISIBILITY(s.Other) != elf.STV_HIDDEN {
				t.Errorf("%s: %s is visible", im.path, s.Name)
			}
		}
		if set := im.file.Section("set_sdt_probes_set"); set == nil || set.Size == 0 {
			t.Errorf("%s: no probes in their linker set", im.path)
		}
	}
}

// names returns those that an object defines.
func names(t *testing.T, object string) []string {
	t.Helper()
	var all []string
	for _, s := range openImage(t, object).symbols {
		if elf.ST_BIND(s.Info) != elf.STB_LOCAL && s.Section != elf.SHN_UNDEF {
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)
	return all
}

// TestStubsKeepPromises links with linkers that are told to refuse an object
// which promises less than the others, or wants an executable stack.
func TestStubsKeepPromises(t *testing.T) {
	bfd, lld := amd64.Linker("bfd"), amd64.Linker("lld")
	for _, c := range []struct {
		compiler compiler
		linker   toolchains.Linker
		flags    []string
	}{
		{amd64Compiler(toolchains.GCC, "-O2", "-fcf-protection=full"), bfd, []string{"-Wl,-z,cet-report=error", "-Wl,--fatal-warnings"}},
		{amd64Compiler(toolchains.Clang, "-O2", "-fcf-protection=full"), lld, []string{"-Wl,-z,cet-report=error", "-Wl,--fatal-warnings"}},
		{crossCompiler(arm64, toolchains.GCC, "-O2", "-mbranch-protection=standard"), arm64.Linker("bfd"), []string{"-Wl,-z,force-bti", "-Wl,--fatal-warnings"}},
		{crossCompiler(arm64, toolchains.Clang, "-O2", "-mbranch-protection=standard"), lld, []string{"-Wl,-z,bti-report=error", "-Wl,--fatal-warnings"}},
		{crossCompiler(arm, toolchains.GCC, "-O2"), arm.Linker("bfd"), []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(i386, toolchains.GCC, "-O2", "-fcf-protection=full"), i386.Linker("bfd"), []string{"-Wl,-z,cet-report=error", "-Wl,--fatal-warnings"}},
		{crossCompiler(loong64, toolchains.Clang, "-O2"), lld, []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(ppc64, toolchains.GCC, "-O2"), ppc64.Linker("bfd"), []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(ppc64le, toolchains.GCC, "-O2"), ppc64le.Linker("bfd"), []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(ppc64le, toolchains.Clang, "-O2", "-mcpu=pwr10"), lld, []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(riscv64, toolchains.GCC, "-O2"), riscv64.Linker("bfd"), []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(riscv64, toolchains.GCC, "-O2", "-march=rv64gc", "-mabi=lp64"), riscv64.Linker("bfd"), []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(riscv64, toolchains.Clang, "-O2", "-march=rv64ima", "-mabi=lp64"), lld, []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(s390x, toolchains.GCC, "-O2"), s390x.Linker("bfd"), []string{"-Wl,--fatal-warnings"}},
		{crossCompiler(s390x, toolchains.Clang, "-O2"), lld, []string{"-Wl,--fatal-warnings"}},
	} {
		t.Run(c.compiler.String()+"/"+c.linker.Name, func(t *testing.T) {
			c.compiler.parallel(t, c.linker.Path)
			calls := c.compiler.object(t, "calls.c")
			for _, objects := range [][]string{{calls}, {convert(t, calls)}} {
				for _, stubs := range []string{makeStubs(t, objects), assembledStubs(t, c.compiler, objects)} {
					flags := append([]string{"-shared", "-nostdlib"}, c.flags...)
					expect.Value(link(c.compiler.machine, c.linker, "lib.so", flags, append(objects, stubs)...))(t)
				}
			}
		})
	}
}

// TestStubsLint holds eu-elflint and readelf to what is made of every object.
func TestStubsLint(t *testing.T) {
	t.Parallel()
	tools.Need(t, "eu-elflint", "readelf")
	var rows [][]string
	for _, o := range objects.Paths(t) {
		rows = append(rows, append(objects.Recipe(t, o)[:3], o))
	}
	rows = product.New("source", "machine", "compiler").Choose(t, rows)
	made := 0
	for _, row := range rows {
		o := row[3]
		out := filepath.Join(t.TempDir(), "stubs.o")
		if _, err := tools.Try(converter, "stubs", "-o", out, o); err != nil {
			disk.Absent(t, out)
			continue
		}
		made++
		lint(t, o, out, "stubs")
	}
	if made < len(rows)*8/10 {
		t.Errorf("only of %d of %d objects", made, len(rows))
	}
}

// TestStubsGoWithTheirRecords collects garbage: of a probe in dead code nothing
// is left where the linker drops linker sets at all, and the others are in theirs.
func TestStubsGoWithTheirRecords(t *testing.T) {
	for _, c := range every([]compiler{amd64Compiler(toolchains.GCC, "-O2", "-ffunction-sections"), crossCompiler(loong64, toolchains.GCC, "-O2", "-ffunction-sections"), crossCompiler(riscv64, toolchains.Clang, "-O2", "-ffunction-sections")},
		[]layout{pairs}, []mode{modePIE}) {
		t.Run(c.String(), func(t *testing.T) {
			c.compiler.parallel(t, c.linker.Path)
			// What reads no records does not keep them: this looks for another layout's.
			p := compileProgram(t, c.compiler, relative32, false)
			objects := append(convertAll(t, p.probed), convert(t, c.compiler.object(t, "dead.c")))
			stubs := makeStubs(t, objects)
			if all := names(t, stubs); !slices.Contains(all, "sdt_dead___only") || !slices.Contains(all, "sdt_provider_dead") {
				t.Fatalf("%q", all)
			}
			got := expect.Value(c.mode.link(p, c.linker, []string{"-Wl,--gc-sections"}, append(objects, p.show, stubs)))(t)
			im := openImage(t, got.image)
			// mold keeps every section that is named like a C identifier.
			keeps := c.linker.Name == "mold"
			count := map[string]uint64{}
			for _, s := range im.symbols { // of which linkers make some local
				switch name := s.Name; {
				case !keeps && (strings.HasPrefix(name, "sdt_dead") || name == "sdt_provider_dead"):
					t.Errorf("%s: %s is left", got.image, name)
				case strings.HasPrefix(name, "sdt_provider_"):
					count["set_sdt_providers_set"]++
				case strings.HasPrefix(name, "sdt_"):
					count["set_sdt_probes_set"]++
				}
			}
			for _, set := range []string{"set_sdt_providers_set", "set_sdt_probes_set"} {
				if s := im.file.Section(set); s == nil || s.Size != 8*count[set] || count[set] == 0 {
					t.Errorf("%s: %d objects, and the section %s is %+v", got.image, count[set], set, s)
				}
			}
		})
	}
}

// TestLint holds eu-elflint and readelf to every object that can be converted:
// they have nothing to say that they do not say of the unconverted one, but that
// there are relocations of type NONE.
func TestLint(t *testing.T) {
	t.Parallel()
	tools.Need(t, "eu-elflint", "readelf")
	var rows [][]string
	for _, o := range objects.Paths(t) {
		for _, flags := range []string{"--layout pairs", "--layout relative", "--layout freebsd", "--stapsdt"} {
			rows = append(rows, append(objects.Recipe(t, o)[:3], flags, o))
		}
	}
	rows = product.New("source", "machine", "compiler", "options").Choose(t, rows)
	directory := t.TempDir()
	converted := 0
	for _, row := range rows {
		flags, before := row[3], row[4]
		after := filepath.Join(directory, filepath.Base(before))
		if _, err := tools.Try(converter, append(strings.Fields(flags), "-o", after, before)...); err != nil {
			continue // It is to be refused; other tests say so.
		}
		converted++
		lint(t, before, after, flags)
	}
	if converted < len(rows)/4 {
		t.Errorf("only %d of %d objects were converted", converted, len(rows))
	}
}

func lint(t *testing.T, before, after, flags string) {
	t.Helper()
	for _, tool := range [][]string{{"eu-elflint", "--gnu-ld"}, {"readelf", "-aW"}} {
		known := complaintsBefore(tool, before)
		for c := range complaints(tool, after) {
			if !known[c] && !noneRelocation.MatchString(c) && !ownNote.MatchString(c) && c != "No errors" {
				t.Errorf("%s %s: %s says %q", filepath.Base(before), flags, tool[0], c)
			}
		}
	}
}

// before holds what complaintsBefore has returned, by tool and object.
var before sync.Map

// complaintsBefore is complaints of a committed object, which several tests ask for.
func complaintsBefore(tool []string, object string) map[string]bool {
	key := tool[0] + " " + object
	found, ok := before.Load(key)
	if !ok {
		found, _ = before.LoadOrStore(key, complaints(tool, object))
	}
	return found.(map[string]bool)
}

// complaints returns the lines in which a tool finds fault, without numbers: what
// is in the file before keeps its faults at other places.
func complaints(tool []string, path string) map[string]bool {
	out, _ := tools.Try(tool[0], append(tool[1:len(tool):len(tool)], path)...)
	found := map[string]bool{}
	for _, line := range strings.Split(out, "\n") {
		if tool[0] == "readelf" && !findsFault(line) {
			continue
		}
		line = strings.ReplaceAll(line, path, "FILE")
		if line = strings.TrimSpace(numbers.ReplaceAllString(line, "#")); line != "" {
			line = unknownSection.ReplaceAllString(line, "section $1 is of an unknown type")
			found[unknownRelocation.ReplaceAllString(line, "relocations are of unknown types")] = true
		}
	}
	return found
}

// findsFault reports whether readelf finds fault in a line. Outputs of many megabytes are too
// long for a regular expression.
func findsFault(line string) bool {
	for _, mark := range []string{"<corrupt", "<unknown", "arning:", "rror:"} {
		if strings.Contains(line, mark) {
			return true
		}
	}
	return strings.HasPrefix(line, "readelf: ")
}

var (
	numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)
	// A row of readelf's table, of a section of a type that it does not know, as binutils
	// 2.40 does not know SHT_CREL. The rest of the row are places and sizes.
	unknownSection = regexp.MustCompile(`^\[ *#\] (\S+) +#: <unknown> .*`)
	// What elflint 0.188 says of all relocations of LoongArch.
	unknownRelocation = regexp.MustCompile(`^section \[ *#\] '[^']+': relocation #: invalid type$`)
	// What elflint says of a relocation of type 0, whatever it is called.
	noneRelocation = regexp.MustCompile(`^section \[ *#\] '\.rela?\..*': relocation #: relocation type invalid for the file type$`)
	// What elflint says of the notes of any object: it knows those of SystemTap in linked files. readelf 2.40 applies no relocation that
	// subtracts on LoongArch.
	ownNote = regexp.MustCompile(`unknown object file note type # with owner name '(stapsdt|sdtconvert)'|unable to apply unsupported reloc type # to section \.note\.sdtconvert`)
)
