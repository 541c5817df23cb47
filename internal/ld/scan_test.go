package ld

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

func testScanner() *scanner {
	ln := line.Parse([]string{"-plugin", "plugin.so"}, line.GNURules)
	return newScanner(linker{}, scriptReader{line: ln}, patch.Options{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}, 1)
}

// checkScan compares what a scan says of an ELF file with what debug/elf reads. It
// reports whether the file has to do with probes.
func checkScan(t *testing.T, path string, data []byte) bool {
	t.Helper()
	s := testScanner()
	in := s.input(named{path: path, file: path})
	if in.probes && !in.names && in.late.Probes == 0 {
		t.Errorf("%s: mentions stubs, but no name of probes", path)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil || in.typ != filetype.ELF {
		return in.names
	}
	if in.elf != f.Type && in.elf != elf.ET_NONE {
		t.Errorf("%s: is of type %v, and not %v", path, f.Type, in.elf)
	}
	if in.elf != elf.ET_REL {
		return in.names
	}
	symbols, err := f.Symbols()
	if err != nil || in.err != nil {
		return in.names
	}
	mentions := func(needles [][]byte) bool {
		return slices.ContainsFunc(symbols, func(symbol elf.Symbol) bool {
			return slices.ContainsFunc(needles, func(n []byte) bool { return strings.Contains(symbol.Name, string(n)) })
		})
	}
	if !in.names && mentions(s.any) {
		t.Errorf("%s: has names of probes that were not seen", path)
	}
	stub := slices.ContainsFunc(symbols, func(symbol elf.Symbol) bool { return s.options.Names.IsStub(symbol.Name) })
	if in.late.Compiler == "" && in.probes != stub {
		t.Errorf("%s: has probes: %v, want %v", path, in.probes, stub)
	}
	for _, section := range f.Sections {
		if strings.HasPrefix(section.Name, ".gnu.lto_") && in.late.Compiler == "" {
			t.Errorf("%s: holds code of GCC that was not seen", path)
		}
	}
	return in.names
}

func TestScan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "object.o")
	with, without := 0, 0
	for _, file := range append(objects.Committed(t, 1<<20), objects.Foreign(t, 1<<20)...) {
		disk.Write(t, path, file.Data)
		if checkScan(t, path, file.Data) {
			with++
		} else {
			without++
		}
	}
	if with == 0 || without == 0 {
		t.Errorf("%d files have to do with probes, and %d have not", with, without)
	}
}

// The name of a stub is a part of the name that a conversion gives to its probe object.
func TestConvertedHasNoProbes(t *testing.T) {
	dir, count := t.TempDir(), 0
	for _, file := range objects.Committed(t, 1<<20) {
		o, err := elfreloc.Open(bytes.NewReader(file.Data), int64(len(file.Data)), file.Name)
		if err != nil {
			continue
		}
		scan, err := patch.Find(o, machines.Lookup(o.ABI()), patch.DefaultNames())
		if err != nil || len(scan.Calls) == 0 || slices.ContainsFunc(scan.Stubs, func(s *patch.Stub) bool { return s.Kind == arch.Enabled }) {
			continue
		}
		options := patch.Options{ProbePrefix: "sdt_"}
		for _, stub := range scan.Stubs {
			options.Names.Symbols = append(options.Names.Symbols, stub.Name)
		}
		out, err := patch.Convert(o, options)
		if err != nil || out == nil {
			continue
		}
		converted := expect.Value(objects.Assemble(out, file.Data))(t)
		count++
		for name, data := range map[string][]byte{"object.o": converted, "lib.a": archiveOf(converted)} {
			path := filepath.Join(dir, name)
			disk.Write(t, path, data)
			s := newScanner(linker{}, scriptReader{line: line.Parse(nil, line.GNURules)}, options, 1)
			in := &linkInput{named: named{path: path, file: path}}
			s.neighbours([]*linkInput{in})
			if !in.names || in.probes || in.part == nil || in.part.err != nil || !in.part.earlier || !in.part.need.Missing() {
				t.Errorf("%s as %s: names %v, probes %v, part %+v", file.Name, name, in.names, in.probes, in.part)
			}
		}
	}
	if count == 0 {
		t.Error("no object was converted")
	}
}

// archiveOf returns an archive of one member.
func archiveOf(data []byte) []byte {
	return append([]byte(fmt.Sprintf("!<arch>\n%-16s%-12d%-6d%-6d%-8o%-10d`\n", "object.o/", 0, 0, 0, 0o644, len(data))), data...)
}

func FuzzScan(f *testing.F) {
	for _, file := range append(objects.Committed(f, 8<<10), objects.Foreign(f, 8<<10)...) {
		f.Add(file.Data)
	}
	path := filepath.Join(f.TempDir(), "fuzz.o")
	f.Fuzz(func(t *testing.T, data []byte) {
		disk.Write(t, path, data)
		checkScan(t, path, data)
	})
}

// What the line names comes first, each file once, and then what scripts name.
func TestScannedOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"libx.so": "GROUP(a.o inner.ld)\n", "inner.ld": "INPUT(b.o libx.so)\n", "a.o": "\x7fELF", "b.o": "\x7fELF", "c.o": "",
	} {
		disk.Write(t, name, text)
	}
	ln := line.Parse(strings.Fields("c.o libx.so -L. -lx c.o a.o nothing.o"), line.GNURules)
	s := testScanner()
	s.line, s.reader.line = ln, ln
	all := s.all(findFiles(ln), []named{{"b.o", "b.o", "flag.ld"}, {"more.o", "more.o", "flag.ld"}})
	expect.Equal(t, "c.o libx.so ./libx.so a.o nothing.o ./a.o ./inner.ld ./b.o b.o more.o", pathsOf(all.inputs))
	scripts := map[string]string{}
	for _, in := range all.inputs {
		scripts[in.path] = in.script
	}
	if scripts["a.o"] != "" || scripts["./inner.ld"] != "libx.so" || scripts["./b.o"] != "./inner.ld" || scripts["more.o"] != "flag.ld" {
		t.Errorf("named by %q", scripts)
	}
	for i, in := range all.byArg {
		if arg := ln.Args[i]; arg.Kind == line.Input && in.path != arg.Value {
			t.Errorf("%q is %s", arg.Words, in.path)
		}
	}
}

// Of two libraries of one name, linkers take that for the machine of the link.
func TestLibraryOfMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, object string) {
		expect.OK(t, os.MkdirAll(filepath.Dir(name), 0o777))
		disk.Write(t, name, objects.Read(t, object))
	}
	write("arm/libx.a", "calls.arm64-gcc12-O2.o")
	write("intel/libx.a", "calls.amd64-gcc12-O2.o")
	write("arm.o", "calls.arm64-gcc12-O2.o")
	write("intel.o", "calls.amd64-gcc12-O2.o")
	for words, want := range map[string]string{
		"intel.o -Larm -Lintel -lx": "intel/libx.a",
		"arm.o -Lintel -Larm -lx":   "arm/libx.a",
		"-Lintel -Larm -lx":         "intel/libx.a",
		"nothing.o -Larm -lx":       "arm/libx.a",
		"arm.o -Lintel -lx":         "arm.o", // the linker goes on to directories of its own
	} {
		files := findFiles(line.Parse(strings.Fields(words), line.GNURules)).files
		expect.Equal(t, want, files[len(files)-1].path, "%s: takes", words)
	}
}
