//go:build !race

// The race detector allocates memory of its own.

package convert

import (
	"bytes"
	"debug/elf"
	"io"
	"runtime"
	"slices"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// withCalls returns a committed object with so many more calls of its first stub, one behind
// the other.
func withCalls(t *testing.T, name string, n int) []byte {
	t.Helper()
	data := objects.Read(t, name)
	o := objects.Open(t, data)
	syms := expect.Value(o.Symbols())(t)
	stub := 1
	for !patch.DefaultNames().IsStub(syms.Name(stub)) {
		stub++
	}
	e := expect.Value(o.Edit())(t)
	text := slices.IndexFunc(o.Sections, func(s elfreloc.Section) bool { return s.Name == ".text" })
	at := e.Append(text, bytes.Repeat([]byte{0xe8, 0, 0, 0, 0}, n))
	for i := range n {
		r := elfreloc.Relocation{Offset: at + uint64(5*i) + 1, Sym: uint32(stub), Type: uint32(elf.R_X86_64_PLT32), Addend: -4}
		expect.OK(t, e.AddRelocation(text, r))
	}
	return objects.Save(t, e, data)
}

// A site takes at most 0.6 KB until the object is written, besides the file itself. All
// that is allocated counts, garbage too.
func TestMemoryOfASite(t *testing.T) {
	const most, sites = 600, 50_000
	s := newScratch(t)
	expect.OK(t, s.Write(withCalls(t, "calls.amd64-clang19-O2.o", sites)))
	in := expect.Value(input.Open(s.Path()))(t)
	defer in.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	made := New(Options{Patch: patch.Options{FixedLayout: true}}, nil).convertSource(in.Source())
	if made.err != nil || made.output == nil {
		t.Fatalf("got %+v", made)
	}
	expect.OK(t, made.output.Write(io.Discard, in))
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / sites; each > most {
		t.Errorf("%d bytes for each of %d sites, want at most %d", each, sites, most)
	}
}
