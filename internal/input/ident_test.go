package input_test

import (
	"bytes"
	"debug/elf"
	"path/filepath"
	"testing"

	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// ident returns what the first bytes of a file say.
func ident(t *testing.T, data []byte) (input.Target, elf.Type, bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	disk.Write(t, path, data)
	f := expect.Value(input.Open(path))(t)
	defer f.Close()
	return f.Source().Ident()
}

func TestIdent(t *testing.T) {
	targets := map[input.Target]bool{}
	for _, file := range append(objects.Committed(t, 1<<20), objects.Foreign(t, 1<<20)...) {
		f, err := elf.NewFile(bytes.NewReader(file.Data))
		if err != nil {
			continue // made to be broken
		}
		want := input.Target{Class: f.Class, Data: f.Data, Machine: f.Machine}
		if target, typ, ok := ident(t, file.Data); !ok || target != want || typ != f.Type {
			t.Errorf("%s: %v of type %v, %v; want %v of type %v", file.Name, target, typ, ok, want, f.Type)
		}
		targets[want] = true
	}
	if len(targets) < 4 {
		t.Errorf("objects for %v alone", targets)
	}
}

func TestIdentOfOthers(t *testing.T) {
	whole := objects.Read(t, "calls.amd64-gcc12-O2.o")[:20]
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(whole)
		b[at] = to
		return b
	}
	if _, _, ok := ident(t, whole); !ok {
		t.Error("the first 20 bytes are not enough")
	}
	for what, data := range map[string][]byte{
		"nothing": nil, "text": []byte("INPUT(/lib/libc.so.6 and more)\n"), "too little": whole[:19], "no magic number": changed(0, 'E'),
		"no byte order": changed(elf.EI_DATA, 3), "another version": changed(elf.EI_VERSION, 2),
	} {
		if target, typ, ok := ident(t, data); ok || target != (input.Target{}) || typ != 0 {
			t.Errorf("%s: %v of type %v, %v", what, target, typ, ok)
		}
	}
}
