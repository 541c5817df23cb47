//go:build linux

package safety

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// An object that the compiler has written without permission to read it is not left as it is
// in silence.
func TestUnreadableObject(t *testing.T) {
	s := smallSample(t)
	directory := openDirectory(t)
	path := s.place(t, directory)
	expect.OK(t, os.Chmod(directory, 0o777))
	object := filepath.Join(directory, "out.o")
	asNobody(t, "cc", "--", "sh", "-c", "cat "+path+" >"+object+"; chmod 0 "+object, "-o", object).failed(t, "out.o: permission denied")
	wantOnly(t, directory, "a.o")
}

// The compiler can write an object in a directory that is read-only, and sdtconvert can
// neither replace nor remove it.
func TestObjectInReadOnlyDirectory(t *testing.T) {
	s := smallSample(t)
	directory := openDirectory(t)
	path := s.place(t, directory)
	for name, mode := range map[string]os.FileMode{path: 0o666, directory: 0o555} {
		expect.OK(t, os.Chmod(name, mode))
	}
	defer os.Chmod(directory, 0o755)
	o := asNobody(t, "cc", "--", "sh", "-c", "touch "+path, "-o", path)
	want := "sdtconvert: " + path + ": cannot create a file in " + directory + ": permission denied\nsdtconvert: remove " + path + ": permission denied\n"
	if o.status != 1 || o.stderr != want {
		t.Errorf("got %+v, want status 1 and %s", o, want)
	}
	wantBytes(t, path, s.old)
	wantOnly(t, directory, "a.o")
}
