package paths_test

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/paths"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

func TestPathsStayAsTheyAreWritten(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{paths.Join("", "a"), "a"},
		{paths.Join(".", "a"), "./a"},
		{paths.Join("link/..", "../a"), "link/../../a"},
		{paths.Join("link/../", "a"), "link/../a"},
		{paths.Join("/", "a"), "/a"},
		{paths.Beside("lib.a", "a.o"), "a.o"},
		{paths.Beside("link/../lib.a", "../a.o"), "link/../../a.o"},
		{paths.Directory("a"), "."},
		{paths.Directory("/a"), "/"},
		{paths.Directory("link/../a"), "link/.."},
		{paths.Directory("link//a"), "link"},
	} {
		expect.Equal(t, filepath.FromSlash(c.want), c.got)
	}
}

// Each path leads to the file that the system opens.
func TestPathsLeadWhereTheSystemGoes(t *testing.T) {
	root := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, name := range []string{"a", "other/a", "other/sub/a"} {
		os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o777)
		disk.Write(t, filepath.Join(root, name), name)
	}
	for link, to := range map[string]string{"link": "other/sub", "file": "link/../a", "away": root} {
		expect.OK(t, os.Symlink(to, filepath.Join(root, link)))
	}
	// The shell says in $PWD by which path it has come here.
	t.Setenv("PWD", root+"/link")
	expect.OK(t, os.Chdir(root+"/link"))
	t.Cleanup(func() { os.Chdir(root) })
	for _, path := range []string{"a", "../a", "../../a", "../../link/../a", "../../file", "../../away/link/a", root + "/link/../a"} {
		text := disk.Read(t, path)
		real, err := paths.Real(path)
		if want := filepath.Join(root, string(text)); err != nil || real != want {
			t.Errorf("%s: got %s, %v, want %s", path, real, err, want)
		}
		absolute, err := paths.Absolute(path)
		if err != nil || !filepath.IsAbs(absolute) {
			t.Errorf("%s: got %s, %v", path, absolute, err)
		}
		expect.Equal(t, string(text), string(disk.Read(t, absolute)), "%s: %s", path, absolute)
	}
	if _, err := paths.Real("none"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
