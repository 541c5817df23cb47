package resolve_test

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

// addressOf returns where a symbol stands, as a place to look up, by its name and,
// where several have that, the source file.
func addressOf(t testing.TB, path, name string) (section int, off uint64) {
	t.Helper()
	o := tools.OpenELF(t, path)
	syms := expect.Value(o.Symbols())(t)
	for i := range syms.Len() {
		if s := syms.At(i); s.Name == name && s.Defined() {
			if o.Type == elf.ET_REL {
				section = s.Section
			}
			return section, s.Value
		}
	}
	t.Fatalf("%s: no symbol %q", path, name)
	return 0, 0
}

// Local functions of one name are different functions, told apart by their
// source files.
func TestEqualNames(t *testing.T) {
	tools.Need(t, "gcc")
	objects := compile(t, "gcc", []string{"-O2", "-fPIC"}, "program.c", "other.c")
	merged := filepath.Join(t.TempDir(), "merged.o")
	tools.Output(t, "gcc", "-r", "-nostdlib", "-o", merged, objects[0], objects[1])
	image := filepath.Join(t.TempDir(), "image")
	tools.Output(t, "gcc", "-o", image, objects[0], objects[1])
	for _, path := range []string{merged, image} {
		o := tools.OpenELF(t, path)
		table := tableOf(t, path, nowhere)
		syms := expect.Value(o.Symbols())(t)
		var files []string
		for i := range syms.Len() {
			s := syms.At(i)
			if s.Name != "helper" {
				continue
			}
			if o.Type != elf.ET_REL {
				s.Section = 0
			}
			f, ok := table.Lookup(s.Section, s.Value+1)
			if !ok || f.Symbol != i || f.Name != "helper" {
				t.Errorf("%s: symbol %d is %+v", path, i, f)
			}
			files = append(files, table.SourceFile(f))
		}
		expect.Equal(t, "program.c other.c", strings.Join(files, " "), "%s: the files of the helpers", path)
		section, start := addressOf(t, path, "entry")
		if f, _ := table.Lookup(section, start); table.SourceFile(f) != "" {
			t.Errorf("entry is of %s", table.SourceFile(f))
		}
		section, start = addressOf(t, path, "divided.cold")
		if f, _ := table.Lookup(section, start); f.Name != "divided" {
			t.Errorf("divided.cold is %+v", f)
		}
	}
}

// The linker keeps riscv64's local labels, since it moves them: none of them, nor
// a mapping symbol, is ever a function. Other assemblers keep none.
func TestLocalLabels(t *testing.T) {
	for _, m := range toolchains.Foreign() {
		if m == toolchains.I386 {
			continue // it has neither
		}
		gcc := m.Tool("gcc")
		tools.Need(t, gcc)
		object := compile(t, gcc, []string{"-O2"}, "program.c")[0]
		o, table := tools.OpenELF(t, object), tableOf(t, object, nowhere)
		syms := expect.Value(o.Symbols())(t)
		seen := 0
		for i := range syms.Len() {
			s := syms.At(i)
			if !strings.HasPrefix(s.Name, ".L") && !strings.HasPrefix(s.Name, "$") || s.Section <= 0 || !o.Sections[s.Section].Executable() {
				continue
			}
			seen++
			if f, ok := table.Lookup(s.Section, s.Value); ok && f.Symbol == i {
				t.Errorf("%s: %q is a function", gcc, s.Name)
			}
		}
		expect.Equal(t, machines.Lookup(o.ABI()).Traits().Mapping != "", seen >= 2, "%s: has labels", gcc)
	}
}

// An image without section headers has its segments: unwind tables are found
// through them, and the loader's symbols are for the caller to find.
func TestNoSectionHeaders(t *testing.T) {
	for _, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			tools.Need(t, m.Tools("gcc", "nm")...)
			objects := compile(t, m.Tool("gcc"), []string{"-O2", "-fPIC", "-fasynchronous-unwind-tables"}, "program.c", "other.c")
			image := filepath.Join(t.TempDir(), "image")
			tools.Output(t, m.Tool("gcc"), append([]string{"-shared", "-o", image}, objects...)...)
			functions := listFunctions(t, m, image)
			o := withoutSections(t, image)
			without := expect.Value(resolve.New(o, nowhere))(t)
			for _, f := range functions {
				if g, ok := without.Lookup(0, f.start); slices.Contains(exported, f.name) && !strings.HasPrefix(f.name, "asm") &&
					(!ok || !isUnnamed(f, g, unnamedSource(m))) {
					t.Errorf("%s at %#x is %+v", f.name, f.start, g)
				}
			}
			opts := nowhere
			opts.Dynsym = loaderSymbols(t, image, o)
			table := expect.Value(resolve.New(o, opts))(t)
			// Where there are descriptors, only the headers tell.
			checkUnnamed(t, functions, table, unnamedSource(m), machines.Lookup(o.ABI()).Traits().Descriptors == "")
		})
	}
}

// withoutSections opens a copy of an image that has no section headers.
func withoutSections(t *testing.T, image string) *elfreloc.Object {
	t.Helper()
	data := disk.Read(t, image)
	shoff, shnum := data[40:48], data[60:64]
	if elf.Class(data[elf.EI_CLASS]) == elf.ELFCLASS32 {
		shoff, shnum = data[32:36], data[48:52]
	}
	clear(shoff) // e_shoff
	clear(shnum) // e_shnum, e_shstrndx
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), image)
	if err != nil || len(o.Sections) > 0 {
		t.Fatalf("%d sections, %v", len(o.Sections), err)
	}
	return o
}

func loaderSymbols(t *testing.T, image string, o *elfreloc.Object) *elfreloc.Symbols {
	t.Helper()
	f := disk.OpenELF(t, image)
	entries := expect.Value(f.Section(".dynsym").Data())(t)
	return expect.Value(o.MakeSymbols(entries, expect.Value(f.Section(".dynstr").Data())(t)))(t)
}

// What is wrong with a debug file or with unwind tables is said, and the rest is
// used.
func TestWarnings(t *testing.T) {
	tools.Need(t, "gcc", "strip", "objcopy")
	objects := compile(t, "gcc", []string{"-O2", "-fPIC"}, "program.c", "other.c")
	directory := t.TempDir()
	image := filepath.Join(directory, "image")
	tools.Output(t, "gcc", "-shared", "-Wl,--build-id", "-o", image, objects[0], objects[1])
	debug := installByID(t, toolchains.AMD64, image, directory)
	tools.Output(t, "strip", image)
	opts := resolve.Options{DebugRoots: []string{directory}}
	for _, c := range []struct {
		name   string
		damage func(image, debug []byte)
		want   string
		from   resolve.Source
	}{
		{"nothing", func(_, _ []byte) {}, "", resolve.Debug},
		{"debug file", func(_, debug []byte) { clear(debug[:4]) }, "debug file ", resolve.Dynsym},
		{"symbols of the debug file", func(_, debug []byte) { fill(t, debug, ".symtab") }, "debug file ", resolve.Dynsym},
		{"unwind tables", func(image, _ []byte) { fill(t, image, ".eh_frame") }, "image: .eh_frame+0x0: ", resolve.Debug},
	} {
		t.Run(c.name, func(t *testing.T) {
			imageData, debugData := disk.Read(t, image), disk.Read(t, debug)
			defer os.WriteFile(debug, debugData, 0o666)
			damaged := bytes.Clone(debugData)
			c.damage(imageData, damaged)
			disk.Write(t, debug, damaged)
			var warnings []string
			opts := opts
			opts.Warn = func(err error) { warnings = append(warnings, err.Error()) }
			o := expect.Value(elfreloc.Open(bytes.NewReader(imageData), int64(len(imageData)), "image"))(t)
			table := expect.Value(resolve.New(o, opts))(t)
			table.Lookup(0, 0) // which no symbol holds
			if got := strings.Join(warnings, "\n"); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
			entry := dynamicAddress(t, imageData, "entry")
			if f, ok := table.Lookup(0, entry); !ok || f.Raw != "entry" || f.From != c.from {
				t.Errorf("entry is %+v", f)
			}
		})
	}
}

// fill overwrites a section with bytes that mean nothing anywhere.
func fill(t *testing.T, data []byte, name string) {
	t.Helper()
	s := disk.ELF(t, data).Section(name)
	for i := range data[s.Offset:][:s.Size] {
		data[s.Offset:][i] = 0x7f
	}
}

func dynamicAddress(t *testing.T, data []byte, name string) uint64 {
	t.Helper()
	for _, s := range expect.Value(disk.ELF(t, data).DynamicSymbols())(t) {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("no dynamic symbol %s", name)
	return 0
}

// checkStripped strips an image: with its debug file it is as it was, and without
// it every function that the compiler made is still found.
func checkStripped(t *testing.T, m *toolchains.Machine, image string) {
	t.Helper()
	functions := listFunctions(t, m, image)
	want := tableOf(t, image, nowhere)

	directory := t.TempDir()
	stripped := filepath.Join(directory, "image")
	tools.Output(t, m.Tool("strip"), "-o", stripped, image)
	debug := installByID(t, m, image, filepath.Join(directory, "root"))
	with := tableOf(t, stripped, resolve.Options{DebugRoots: []string{filepath.Join(directory, "root")}})
	expect.Equal(t, debug, with.DebugFile(), "debug file")
	checkGiven(t, image, stripped, debug)
	without := tableOf(t, stripped, nowhere)
	expect.Equal(t, "", without.DebugFile(), "debug file")
	for _, address := range places(functions) {
		f, ok := want.Lookup(0, address)
		g, same := with.Lookup(0, address)
		if f.Raw != g.Raw || f.Name != g.Name || f.Start != g.Start || f.Size != g.Size || ok != same || ok && g.From != resolve.Debug {
			t.Errorf("%#x: %+v, with a debug file %+v", address, f, g)
		}
	}
	checkUnnamed(t, functions, without, unnamedSource(m), strings.HasSuffix(t.Name(), "/shared"))
	mini := tableOf(t, withMiniDebugInfo(t, m, image, stripped), nowhere)
	for _, f := range functions {
		before, _ := want.Lookup(0, f.start)
		after, ok := mini.Lookup(0, f.start)
		if f.size > 0 && (!ok || !after.From.IsSymbol() || before.Name != after.Name || before.Start != after.Start || before.Size != after.Size) {
			t.Errorf("%#x: %+v, with .gnu_debugdata %+v", f.start, before, after)
		}
	}
}

// withMiniDebugInfo adds .gnu_debugdata to a stripped image, as gdb's manual says: the functions that are
// not among the dynamic symbols.
func withMiniDebugInfo(t *testing.T, m *toolchains.Machine, image, stripped string) string {
	t.Helper()
	tools.Need(t, "xz")
	directory := t.TempDir()
	path := func(name string) string { return filepath.Join(directory, name) }
	symbols := func(flags ...string) (names []string) {
		out, _ := tools.Try(m.Tool("nm"), append(flags, "--format=posix", "--defined-only", image)...)
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 && strings.Contains("TtWwiDd", f[1]) {
				names = append(names, f[0])
			}
		}
		return names
	}
	dynamic := symbols("-D")
	keep := slices.DeleteFunc(symbols(), func(name string) bool { return slices.Contains(dynamic, name) })
	disk.Write(t, path("keep"), strings.Join(keep, "\n")+"\n")
	tools.Output(t, m.Tool("objcopy"), "--only-keep-debug", image, path("debug"))
	tools.Output(t, m.Tool("objcopy"), "--strip-all", "--keep-symbols="+path("keep"), path("debug"), path("mini"))
	tools.Output(t, "xz", path("mini"))
	tools.Output(t, m.Tool("objcopy"), "--add-section=.gnu_debugdata="+path("mini.xz"), stripped, path("image"))
	return path("image")
}

// checkGiven has a caller give the debug file, which is asked for once and only
// where there are no symbols.
func checkGiven(t *testing.T, image, stripped, debug string) {
	t.Helper()
	for file, want := range map[string]int{image: 0, stripped: 1} {
		asked := 0
		table := tableOf(t, file, resolve.Options{Debug: func() (*elfreloc.Object, error) {
			asked++
			return tools.OpenELF(t, debug), nil
		}})
		if asked != want || (table.DebugFile() != "") != (want > 0) || (table.From() == resolve.Debug) != (want > 0) {
			t.Errorf("%s: asked %d times for the debug file, and used %q, want %d", file, asked, table.DebugFile(), want)
		}
	}
}

// compiled are functions of program.c that have unwind tables and are not
// exported from any image.
var compiled = []string{"partial.part.0", "constant.constprop.0", "removed.isra.0", "hidden"}

// exported are functions of program.c that a shared library exports.
var exported = []string{"entry", "divided", "weakly", "asm_sized", "asm_inner"}

// unnamedSource is where the functions of images of a machine are from without symbols.
func unnamedSource(m *toolchains.Machine) resolve.Source {
	if m == toolchains.ARM {
		return resolve.Exidx
	}
	return resolve.EhFrame
}

// isUnnamed reports whether a look-up found a function without a name. If it did not find
// where that begins, it has to say that another function may have been found.
func isUnnamed(f function, g resolve.Function, source resolve.Source) bool {
	return g.From == source && !g.From.IsSymbol() && g.Name == fmt.Sprintf("sub_%x", g.Start) && g.Symbol == 0 &&
		(g.Start == f.start || g.Start < f.start && g.Unsized)
}

// checkUnnamed checks what .dynsym and a source without names alone tell.
func checkUnnamed(t *testing.T, functions []function, without *resolve.Table, source resolve.Source, shared bool) {
	t.Helper()
	seen := 0
	for _, f := range functions {
		for _, address := range []uint64{f.start, f.start + f.size/2} {
			g, ok := without.Lookup(0, address)
			switch {
			case slices.Contains(compiled, f.name):
				seen++
				if !ok || !isUnnamed(f, g, source) {
					t.Errorf("%s at %#x is %+v without symbols", f.name, f.start, g)
				}
			case slices.Contains(exported, f.name) && shared:
				seen++
				if !ok || g.Start != f.start || g.From != resolve.Dynsym || g.Raw != f.name {
					t.Errorf("%s at %#x is %+v by .dynsym", f.name, f.start, g)
				}
			}
		}
	}
	if seen < 2*len(compiled) {
		t.Errorf("%d addresses were compared", seen)
	}
}

// installByID puts the debug file of an image where its build id leads to.
func installByID(t *testing.T, m *toolchains.Machine, image, root string) string {
	t.Helper()
	id := buildID(t, image)
	path := filepath.Join(root, ".build-id", id[:2], id[2:]+".debug")
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
	tools.Output(t, m.Tool("objcopy"), "--only-keep-debug", image, path)
	return path
}

func buildID(t *testing.T, image string) string {
	t.Helper()
	id, err := debuginfo.BuildID(tools.OpenELF(t, image))
	if err != nil || len(id) < 8 {
		t.Fatalf("build id %x, %v", id, err)
	}
	return hex.EncodeToString(id)
}

// Descriptors alone give the functions of a program without symbols and unwind tables.
func TestDescriptorsAlone(t *testing.T) {
	m := toolchains.PPC64
	tools.Need(t, m.Tools("gcc", "nm", "strip")...)
	objects := compile(t, m.Tool("gcc"), []string{"-O2", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}, "program.c", "other.c")
	for _, kind := range []string{"-shared", "-pie", "-no-pie"} {
		image := filepath.Join(t.TempDir(), "image")
		tools.Must(t, m.Tool("gcc"), append([]string{kind, "-nostdlib", "-Wl,-e,entry", "-Wl,--unresolved-symbols=ignore-all", "-o", image}, objects...)...)
		functions := listFunctions(t, m, image)
		tools.Must(t, m.Tool("strip"), image)
		table := tableOf(t, image, nowhere)
		seen := 0
		for _, f := range functions {
			if !slices.Contains(compiled, f.name) {
				continue
			}
			seen++
			if g, ok := table.Lookup(0, f.start+f.size/2); !ok || g.Start != f.start || !isUnnamed(f, g, resolve.Descriptors) || !g.Unsized {
				t.Errorf("%s: %s at %#x is %+v", kind, f.name, f.start, g)
			}
		}
		if seen < len(compiled) {
			t.Errorf("%s: %d functions were compared", kind, seen)
		}
	}
}

// What a damaged .ARM.exidx says lies in code and holds the address, or it is refused.
func TestDamagedIndex(t *testing.T) {
	m := toolchains.ARM
	tools.Need(t, m.Tools("gcc", "strip")...)
	objects := compile(t, m.Tool("gcc"), []string{"-O2", "-fPIC", "-fasynchronous-unwind-tables"}, "program.c", "other.c")
	image := filepath.Join(t.TempDir(), "image")
	tools.Must(t, m.Tool("gcc"), append([]string{"-s", "-o", image}, objects...)...)
	f := disk.OpenELF(t, image)
	index, code := f.Section(".ARM.exidx"), f.Section(".text")
	data := disk.Read(t, image)
	random, refused, found := rand.New(rand.NewPCG(1, 1)), 0, 0
	for range 300 {
		damaged := slices.Clone(data)
		for range 1 + random.IntN(3) {
			damaged[index.Offset+random.Uint64N(index.Size)] ^= byte(1 << random.IntN(8))
		}
		o := expect.Value(elfreloc.Open(bytes.NewReader(damaged), int64(len(damaged)), image))(t)
		opts := nowhere
		opts.Warn = func(error) { refused++ }
		table := expect.Value(resolve.New(o, opts))(t)
		for address := code.Addr; address < code.Addr+code.Size; address += 6 {
			g, ok := table.Lookup(0, address)
			if ok && g.From == resolve.Exidx {
				found++
			}
			if ok && (g.Start < code.Addr || g.Start > address || g.Size > 0 && address-g.Start >= g.Size) {
				t.Fatalf("%#x is in %+v", address, g)
			}
		}
	}
	t.Logf("%d refused, %d addresses found", refused, found)
	if refused == 0 || found == 0 {
		t.Error("nothing was refused, or nothing found")
	}
}
