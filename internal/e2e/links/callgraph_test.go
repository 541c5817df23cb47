package links

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestNotLoaded links what is not loaded and named a stub: where a probe was called,
// there is no address, and the other addresses are where they were.
func TestNotLoaded(t *testing.T) {
	for _, ld := range amd64.linkers {
		names := []string{"notloaded.amd64-clang19.o"}
		if ld.Name == "lld" {
			names = append(names, "notloaded.amd64-clang19-crel.o")
		}
		for _, name := range names {
			t.Run(ld.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := compiler{machine: amd64, cc: toolchains.GCC}
				c.need(t)
				tools.Need(t, ld.Path)
				o := objects.Directory() + "/" + name
				_, err := link(amd64, ld, "twin", []string{"-pie"}, o, c.object(t, "callgraph.c", "-fPIC", "-DSTUB"))
				unconverted(t, err)
				got, err := link(amd64, ld, "converted", []string{"-pie"}, convert(t, o), c.object(t, "callgraph.c", "-fPIC"))
				expect.OK(t, err)
				tools.Must(t, got)
				checkNotLoaded(t, openImage(t, got))
			})
		}
	}
}

// checkNotLoaded compares the bytes of sections with what notloaded.amd64.S has there.
func checkNotLoaded(t *testing.T, im *image) {
	t.Helper()
	word := func(b []byte, function string) []byte {
		i := slices.IndexFunc(im.funcs, func(s elf.Symbol) bool { return s.Name == function })
		if i < 0 {
			t.Fatalf("%s: no function %s", im.path, function)
		}
		return binary.LittleEndian.AppendUint64(b, im.funcs[i].Value)
	}
	none := make([]byte, 8)
	graph := append(word([]byte{0, 2}, "f"), none...)
	graph = word(append(append(graph, 2), none...), "g")
	addresses := word(append(word(nil, "f"), none...), "g")
	for section, want := range map[string][]byte{".llvm.callgraph": graph, ".debug_addr": addresses} {
		s := im.file.Section(section)
		if s == nil {
			t.Errorf("%s: no %s", im.path, section)
			continue
		}
		expect.Equal(t, want, expect.Value(s.Data())(t), "%s: %s", im.path, section)
	}
}
