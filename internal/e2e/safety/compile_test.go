//go:build linux

package safety

import (
	"os"
	"path/filepath"
	"testing"
)

// An object that the compiler has written without permission to read it is not left as it is
// in silence.
func TestUnreadableObject(t *testing.T) {
	s := smallSample(t)
	folder := openFolder(t)
	path := s.place(t, folder)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	object := filepath.Join(folder, "out.o")
	asNobody(t, "cc", "--", "sh", "-c", "cat "+path+" >"+object+"; chmod 0 "+object, "-o", object).failed(t, "out.o: permission denied")
	wantOnly(t, folder, "a.o")
}

// The compiler can write an object in a directory that is read-only, and sdtconvert can
// neither replace nor remove it.
func TestObjectInReadOnlyFolder(t *testing.T) {
	s := smallSample(t)
	folder := openFolder(t)
	path := s.place(t, folder)
	for name, mode := range map[string]os.FileMode{path: 0o666, folder: 0o555} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(folder, 0o755)
	o := asNobody(t, "cc", "--", "sh", "-c", "touch "+path, "-o", path)
	want := "sdtconvert: " + path + ": cannot create a file in " + folder + ": permission denied\nsdtconvert: remove " + path + ": permission denied\n"
	if o.status != 1 || o.stderr != want {
		t.Errorf("got %+v, want status 1 and %s", o, want)
	}
	wantBytes(t, path, s.old)
	wantOnly(t, folder, "a.o")
}
