package emit_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

func testOptions() emit.RequirementsOptions {
	return emit.RequirementsOptions{Options: patch.Options{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}}
}

func openBytes(data []byte, name string) (*elfreloc.Object, error) {
	return elfreloc.Open(bytes.NewReader(data), int64(len(data)), name)
}

// needOf adds objects in memory.
func needOf(files ...objects.File) (*emit.Requirements, error) {
	n := emit.NewRequirements(testOptions())
	for _, f := range files {
		o, err := openBytes(f.Data, f.Name)
		if err != nil {
			return nil, err
		}
		if err := n.Add(o, machines.Lookup(o.ABI())); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func objectOf(t *testing.T, files ...objects.File) objects.File {
	t.Helper()
	data := expect.Value(expect.Value(needOf(files...))(t).Object())(t)
	return objects.File{Name: "stubs.o", Data: data}
}

// probes reads what an object has in its linker set of probes, by the reader of
// listings.
func probes(t *testing.T, file objects.File) map[string]linkerset.Probe {
	t.Helper()
	o := expect.Value(openBytes(file.Data, file.Name))(t)
	im := expect.Value(image.Open(o, machines.Lookup(o.ABI())))(t)
	reader := linkerset.NewProbes(im, "sdt_")
	arrays := expect.Value(im.Arrays("set_sdt_probes_set"))(t)
	all := map[string]linkerset.Probe{}
	for _, a := range arrays {
		if a.Size != 8 || !a.Writable {
			t.Errorf("%s: %+v", file.Name, a)
		}
		ref := expect.Value(im.Word(a.Start))(t)
		p, err := reader.Lookup(ref)
		if err != nil || ref.Undefined {
			t.Errorf("%s: %+v, %v", file.Name, ref, err)
		}
		all[p.ID] = p
	}
	return all
}

// Of every machine and byte order, the structures say what the ids say.
func TestProbesReadBack(t *testing.T) {
	for _, name := range []string{
		"calls.amd64-gcc12-O2.o", "calls.arm64-gcc12-O2.o", "calls.arm64be-clang19-O2.o", "calls.loong64-clang19-O2.o", "calls.riscv64-gcc12-O2.o", "calls.amd64-clang19-freebsd.o",
	} {
		in := objects.File{Name: name, Data: objects.Read(t, name)}
		out := objectOf(t, in)
		all := probes(t, out)
		if len(all) < 20 {
			t.Errorf("%s: only %d probes", name, len(all))
		}
		for id, p := range all {
			if want := linkerset.ProbeFromID(id); p.Provider != want.Provider || p.Name != want.Name || p.Module != "" || p.Function != "" {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if p := all["calls___entry__point"]; p.Provider != "calls" || p.Name != "entry-point" {
			t.Errorf("%s: %+v", name, p)
		}
		if p := all["plain"]; p.Provider != "sdt" || p.Name != "plain" {
			t.Errorf("%s: %+v", name, p)
		}
		a, _ := elf.NewFile(bytes.NewReader(in.Data))
		b, err := elf.NewFile(bytes.NewReader(out.Data))
		if err != nil || a.FileHeader != b.FileHeader {
			t.Errorf("%s: %v, %+v, want %+v", name, err, b.FileHeader, a.FileHeader)
		}
		if again := objectOf(t, in, out); len(probes(t, again)) > 0 {
			t.Errorf("%s: not all is defined", name)
		}
	}
}

func TestMade(t *testing.T) {
	calls := objects.File{Name: "calls.o", Data: objects.Read(t, "calls.amd64-clang19-O2.o")}
	for _, c := range []struct {
		file objects.File
		want bool
	}{
		{objectOf(t, calls), true},
		{objectOf(t, objectOf(t, calls)), true},
		{calls, false},
	} {
		o := expect.Value(openBytes(c.file.Data, c.file.Name))(t)
		expect.Equal(t, c.want, expect.Value(emit.IsGenerated(o))(t), "%s", c.file.Name)
		e := expect.Value(o.Edit())(t)
		e.AddSection(elfreloc.NewSection{Name: ".more", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Data: []byte{1}})
		o = objects.Open(t, objects.Save(t, e, c.file.Data))
		expect.Equal(t, false, expect.Value(emit.IsGenerated(o))(t), "%s with more", c.file.Name)
	}
}

// check makes both forms of what is needed: the same bytes each time, or errors.
func check(t *testing.T, file objects.File) (made bool) {
	t.Helper()
	n, err := needOf(file)
	if err != nil {
		return false
	}
	data, err := n.Object()
	if _, sourceErr := n.Source(); sourceErr == nil && err != nil {
		t.Errorf("%s: a source, but no object: %v", file.Name, err)
	}
	if err != nil {
		if !strings.Contains(err.Error(), "two definitions") && err != emit.ErrNoObject {
			t.Errorf("%s: %v", file.Name, err)
		}
		return false
	}
	if again, err := n.Object(); err != nil || !bytes.Equal(data, again) {
		t.Errorf("%s: %v, not the same bytes again", file.Name, err)
	}
	o := expect.Value(openBytes(data, "stubs.o"))(t, "%s", file.Name)
	expect.Equal(t, true, expect.Value(emit.IsGenerated(o))(t), "%s: is generated", file.Name)
	if _, err := needOf(objects.File{Name: "stubs.o", Data: data}); err != nil {
		t.Errorf("%s: %v", file.Name, err)
	}
	checkSymbols(t, file.Name, o)
	return true
}

// checkSymbols looks for symbols that reach beyond their sections, and for code without the mapping
// symbol of its machine.
func checkSymbols(t *testing.T, name string, o *elfreloc.Object) {
	t.Helper()
	syms, marked := expect.Value(o.Symbols())(t), map[int]bool{}
	mark := ""
	if m := machines.Lookup(o.ABI()); m != nil {
		mark = m.Traits().CodeMark
	}
	for i := 1; i < syms.Len(); i++ {
		s := syms.At(i)
		if s.Section > 0 && s.Value+s.Size > o.Sections[s.Section].Size {
			t.Errorf("%s: %s of %d bytes is in a section of %d", name, s.Name, s.Size, o.Sections[s.Section].Size)
		}
		marked[s.Section] = marked[s.Section] || s.Name == mark
	}
	for i := range o.Sections {
		if mark != "" && o.Sections[i].Executable() && !marked[i] {
			t.Errorf("%s: %s has no symbol %s", name, o.Sections[i].Name, mark)
		}
	}
}

func TestOfEveryObject(t *testing.T) {
	made, all := 0, 0
	for _, file := range objects.Committed(t, 1<<20) {
		all++
		if check(t, file) {
			made++
		}
	}
	if made < all*8/10 {
		t.Errorf("of %d objects only %d", all, made)
	}
}

func FuzzNeed(f *testing.F) {
	const limit = 8 << 10
	for _, file := range append(objects.Committed(f, limit), objects.Foreign(f, limit)...) {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, objects.File{Name: "fuzz.o", Data: data}) })
}

// Whether a probe is recorded or its stub is still called, a hidden reference of the same object
// reaches no definition in a library, so that one is made, and hidden. Others are left to the
// library.
func TestHiddenReferences(t *testing.T) {
	tools.Need(t, "gcc", "as")
	random := rand.New(rand.NewPCG(25, 1))
	directory := t.TempDir()
	in := tools.Command{Directory: directory}
	var library strings.Builder
	for i := range 8 {
		fmt.Fprintf(&library, "char sdt_app___p%d[96] = {1};\n", i)
	}
	disk.Write(t, filepath.Join(directory, "lib.c"), library.String())
	disk.Write(t, filepath.Join(directory, "main.c"), "int main(void) { return 0; }\n")
	in.Must(t, "gcc", "-shared", "-fPIC", "-o", "lib.so", "lib.c")
	for n := range tools.Cases(t, 12) {
		var files, paths []string
		want := map[string]bool{}
		for file := range 1 + random.IntN(3) {
			text := "\t.section .note.GNU-stack,\"\",@progbits\n\t.text\n"
			for range 1 + random.IntN(4) {
				probe := fmt.Sprintf("app___p%d", random.IntN(8))
				text += "\tcall __dtrace_probe_" + probe + "\n"
				if random.IntN(2) == 0 {
					text += "\t.globl sdt_" + probe + "\n\t.hidden sdt_" + probe + "\n\t.data\n\t.quad sdt_" + probe + "\n\t.text\n"
					want["sdt_"+probe] = true
				}
			}
			name := fmt.Sprintf("u%d.o", file)
			disk.Write(t, filepath.Join(directory, name+".s"), text)
			in.Must(t, "as", "--64", "-o", name, name+".s")
			files, paths = append(files, name), append(paths, filepath.Join(directory, name))
		}
		for _, convert := range []bool{false, true} {
			options := emit.RequirementsOptions{Options: patch.Options{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}, Converted: true}
			need, part := emit.NewRequirements(options), emit.NewRequirements(options)
			for i, path := range paths {
				data := disk.Read(t, path)
				if out, ok := converted.Object(t, data); ok {
					if convert {
						data = out
					}
					disk.Write(t, path+".converted.o", out)
				}
				o := expect.Value(openBytes(data, path))(t)
				into := need
				if (i+n)%2 == 0 {
					into = part
				}
				expect.OK(t, into.Add(o, machines.Lookup(o.ABI())))
			}
			need.Merge(part)
			o := expect.Value(openBytes(disk.Read(t, filepath.Join(directory, "lib.so")), "lib.so"))(t)
			expect.OK(t, need.Add(o, nil))
			expect.Equal(t, len(want) > 0, need.Missing(), "case %d: something is missing", n)
			if !need.Missing() {
				continue
			}
			disk.Write(t, filepath.Join(directory, "made.o"), expect.Value(need.Object())(t))
			words := []string{"-o", "prog", "main.c", "made.o"}
			for _, name := range files {
				words = append(words, name+".converted.o")
			}
			in.Must(t, "gcc", append(words, "-no-pie", "lib.so")...)
			syms := expect.Value(disk.OpenELF(t, filepath.Join(directory, "made.o")).Symbols())(t)
			for _, s := range syms {
				if strings.HasPrefix(s.Name, "sdt_app___p") && (!want[s.Name] || elf.ST_VISIBILITY(s.Other) != elf.STV_HIDDEN) {
					t.Errorf("case %d, converted %v: %+v, with %v", n, convert, s, want)
				}
			}
		}
	}
}

// A probe is unknown if nothing defines it, and a source defines others of its provider.
func TestUnknownProbes(t *testing.T) {
	tools.Need(t, "as")
	file := filepath.Join(t.TempDir(), "a")
	for _, c := range []struct{ binding, defined, called, want string }{
		{"globl", "app___one", "app___two", "app"},
		{"globl", "app___one", "app___one", ""},
		{"weak", "app___one", "app___two", ""}, // as macros define each probe that they use
		{"globl", "app___one", "other___two", ""},
		{"globl", "app___one", "app", ""},
		{"globl", "app", "app___two", ""},
		{"globl", "plain", "simple", ""},
		{"globl", "app__one", "app__two", ""},
		{"globl", "a__b___c___d", "a__b___e", "a__b"},
	} {
		disk.Write(t, file+".s", fmt.Sprintf("\t.data\n\t.%s sdt_%s\nsdt_%[2]s: .zero 96\n\t.text\n\tcall __dtrace_probe_%s\n", c.binding, c.defined, c.called))
		tools.Must(t, "as", "-o", file+".o", file+".s")
		var want []emit.UnknownProbe
		if c.want != "" {
			want = []emit.UnknownProbe{{File: "a.o", Object: "sdt_" + c.called, Provider: c.want}}
		}
		n := expect.Value(needOf(objects.File{Name: "a.o", Data: disk.Read(t, file+".o")}))(t)
		expect.Equal(t, want, n.Unknown(), "%+v", c)
	}
}

// What is called is the code, and what has the name its descriptor: of the address of the
// code, the pointer to the table of contents, which no symbol stands for, and a word more.
func TestStubsStandForTheirDescriptors(t *testing.T) {
	o := expect.Value(openBytes(objects.Read(t, "calls.ppc64-gcc12-O2.o"), "a.o"))(t)
	n := emit.NewRequirements(testOptions())
	expect.OK(t, n.Add(o, machines.Lookup(o.ABI())))
	f := disk.ELF(t, expect.Value(n.Object())(t))
	syms := expect.Value(f.Symbols())(t)
	entries := map[uint64]bool{}
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			entries[s.Value] = true
			expect.Equal(t, ".opd", f.Sections[s.Section].Name, "the section of %s", s.Name)
		}
	}
	opd, rela := f.Section(".opd"), f.Section(".rela.opd")
	if len(entries) != 2 || !entries[0] || !entries[24] || opd == nil || opd.Size != 48 || rela == nil {
		t.Fatalf("entries %v, sections %v %v", entries, opd, rela)
	}
	relocs, err := rela.Data()
	if err != nil || len(relocs) != 4*24 {
		t.Fatalf("%d bytes of relocations: %v", len(relocs), err)
	}
	for i := range len(relocs) / 24 {
		off, typ, sym := f.ByteOrder.Uint64(relocs[24*i:]), elf.R_PPC64(f.ByteOrder.Uint32(relocs[24*i+12:])), f.ByteOrder.Uint32(relocs[24*i+8:])
		switch {
		case off != uint64(i/2*24+i%2*8):
			t.Errorf("relocation %d is at %d", i, off)
		case i%2 == 1 && (typ != elf.R_PPC64_TOC || sym != 0), i%2 == 0 && (typ != elf.R_PPC64_ADDR64 || sym == 0):
			t.Errorf("relocation %d is %v of symbol %d", i, typ, sym)
		case i%2 == 0:
			s := syms[sym-1]
			if elf.ST_TYPE(s.Info) != elf.STT_SECTION || f.Sections[s.Section].Flags&elf.SHF_EXECINSTR == 0 {
				t.Errorf("descriptor %d is of %+v", i/2, s)
			}
		}
	}
}
