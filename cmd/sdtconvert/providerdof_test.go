package main

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// Absolute paths count from the current directory, or from the one that the objects share.
func TestDirectoryOfAliases(t *testing.T) {
	t.Chdir(t.TempDir())
	wd := expect.Value(os.Getwd())(t)
	for _, c := range []struct {
		objects []string
		want    string
	}{
		{nil, wd},
		{[]string{"a.o", "../b.o"}, wd},
		{[]string{"a.o", filepath.Join(wd, "x", "a.o")}, wd},
		{[]string{"/b/x/a.o", "/b/x/b.o"}, "/b/x"},
		{[]string{"/b/x/a.o", "c.o", "/b/y/a.o"}, "/b"},
		{[]string{"/b/y/z/a.o", "/b/y/a.o", "/bc/a.o"}, "/"},
		{[]string{filepath.Join(wd, "a.o"), "/b/a.o"}, "/"},
	} {
		o := &providerOptions{objects: c.objects}
		expect.Equal(t, c.want, o.patchDOF().Directory, "%q", c.objects)
	}
}
