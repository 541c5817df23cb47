// Package seeds gives the fuzz tests of what reads objects and images something to
// begin with, and tests of broken files what can be broken in them.
package seeds

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// Options are those of a conversion without flags.
func Options() patch.Options {
	return patch.Options{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}
}

// Add adds the committed objects that are small, which fuzz faster, before and
// after their conversion, and as images.
func Add(f *testing.F) {
	f.Helper()
	const limit = 16 << 10
	for _, file := range objects.Committed(f, limit) {
		f.Add(file.Data)
		if converted, err := Convert(file.Data); err == nil && converted != nil {
			f.Add(converted)
			addImages(f, converted)
		}
		addImages(f, file.Data)
	}
}

// Convert converts an object with probes, or says why that cannot be done. It is nil
// for one without probes.
func Convert(data []byte) ([]byte, error) {
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "seed.o")
	if err != nil {
		return nil, err
	}
	opts := Options()
	scan, err := patch.Find(o, machines.Lookup(o.Machine, o.Layout.Class), opts.Names)
	if err != nil {
		return nil, err
	}
	plan, err := patch.NewPlan(scan, opts)
	if err != nil {
		return nil, err
	}
	if errs := plan.Err(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	e, err := o.Edit()
	if err != nil {
		return nil, err
	}
	if err := plan.Apply(e); err != nil || !e.Changed() {
		return nil, err
	}
	out, err := e.Save()
	if err != nil {
		return nil, err
	}
	return objects.Assemble(out, data)
}

// addImages adds what a linker makes of an object, where there is one for it.
func addImages(f *testing.F, object []byte) {
	f.Helper()
	folder := f.TempDir()
	in, out := filepath.Join(folder, "in.o"), filepath.Join(folder, "out")
	if err := os.WriteFile(in, object, 0o666); err != nil {
		f.Fatal(err)
	}
	for _, mode := range []string{"-no-pie", "-pie", "-shared"} {
		cmd := exec.Command("ld", mode, "--unresolved-symbols=ignore-all", "--entry=0", "-z", "noseparate-code", "-o", out, in)
		if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
			return
		} else if err != nil {
			continue // of another machine
		}
		data, err := os.ReadFile(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// Scratch is one file that a test writes all its inputs to: there are so many.
type Scratch struct{ file *os.File }

// NewScratch makes a file that goes with the test.
func NewScratch(t testing.TB) *Scratch {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "scratch.o"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &Scratch{file}
}

// Write makes data the contents of the file, and returns its path.
func (s *Scratch) Write(t testing.TB, data []byte) string {
	t.Helper()
	if _, err := s.file.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.file.Truncate(int64(len(data))); err != nil {
		t.Fatal(err)
	}
	return s.file.Name()
}

// Breakable are small objects of each machine, one of them with groups.
var Breakable = []string{
	"comdat.amd64-gcc12-Os.o",
	"existing.amd64-gcc12-O2.o",
	"existing.arm64-gcc12-O2.o",
	"existing.riscv64-gcc12-O2.o",
}

// Tables lists where the tables of an object are: from and to, as offsets in it.
func Tables(t testing.TB, data []byte) [][2]int {
	t.Helper()
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "seed.o")
	if err != nil {
		t.Fatal(err)
	}
	start := int(o.Layout.Order.Uint64(data[40:]))
	tables := [][2]int{{0, 64}, {start, start + 64*len(o.Sections)}}
	for _, sec := range o.Sections {
		switch sec.Type {
		case elf.SHT_SYMTAB, elf.SHT_REL, elf.SHT_RELA, elf.SHT_GROUP:
			tables = append(tables, [2]int{int(sec.Offset), int(sec.Offset + sec.Size)})
		}
	}
	return tables
}
