package convert

import (
	"debug/elf"
	"path/filepath"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// Memory is reserved for large objects that have probes and for many files, once, and for
// nothing else.
func TestMemoryIsReservedOnce(t *testing.T) {
	small := objects.Read(t, "address.amd64-gcc12-code.o")
	e := expect.Value(objects.Open(t, small).Edit())(t)
	e.AddSection(elfreloc.NewSection{Name: ".padding", Type: elf.SHT_PROGBITS, Data: make([]byte, largeObject)})
	large := objects.Save(t, e, small)
	for _, c := range []struct {
		name  string
		data  []byte
		files int
		want  int
	}{
		{"small", small, 1, 0},
		{"small, of many", small, manyFiles, 1},
		{"large", large, 2, 1},
		{"large without probes", make([]byte, 2*largeObject), 2, 0},
	} {
		path := filepath.Join(t.TempDir(), "a.o")
		disk.Write(t, path, c.data)
		calls := 0
		converter := New(Options{Jobs: 1, Files: c.files, Reserve: func() { calls++ }}, &replace.Writer{})
		for range 2 {
			converter.File(path, path)
		}
		if calls != c.want {
			t.Errorf("%s: %d calls, want %d", c.name, calls, c.want)
		}
	}
}
