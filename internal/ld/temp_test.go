package ld

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// Each path has a place of its own, within the temporary directory, that ends as the path
// does, so that patterns of scripts choose the copy too.
func TestPlaces(t *testing.T) {
	temp := expect.Value(newTempDirectory(t.TempDir()))(t)
	defer temp.remove()
	files := map[string]string{}
	for _, path := range []string{
		"b.o", "./b.o", "B.o", "link/../b.o", "link/b.o", "link", "../b.o", "../../x/../b.o", "..//b.o", "x/../../b.o",
		"/b.o", "//b.o", "/link/b.o", "/../b.o", "b.o/c.o", "/x/crtbegin.o", "x/libfoo.a", "0", "0/b.o", "a b\\1.o",
	} {
		place := expect.Value(temp.place(path))(t)
		if !strings.HasSuffix(place, "/"+strings.TrimPrefix(path, "/")) {
			t.Errorf("%s: the copy is called %s", path, place)
		}
		expect.OK(t, os.WriteFile(place, []byte(path), 0o600))
		real, err := filepath.EvalSymlinks(place)
		if err != nil || !strings.HasPrefix(real, temp.path+"/") || real != filepath.Clean(place) {
			t.Errorf("%s: the copy is in %s, %v", path, real, err)
		}
		files[place] = path
	}
	for place, path := range files {
		expect.Equal(t, path, string(disk.Read(t, place)), "the place")
	}
}
