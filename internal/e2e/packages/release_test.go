package packages

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// TestRelease makes the files of a release in two clones, compares them, and runs the program that
// is in one of them.
func TestRelease(t *testing.T) {
	tools.Need(t, "git", "tar", "gzip", "dpkg-deb", "sha256sum")
	if _, err := os.Stat(tools.Root(".git")); err != nil {
		t.Skip("the source is not a clone")
	}
	targets := runtime.GOOS + "/" + runtime.GOARCH
	var out []string
	for _, name := range []string{"a", "another"} {
		clone := filepath.Join(t.TempDir(), name)
		tools.Must(t, "git", "clone", "-q", tools.Root(), clone)
		out = append(out, t.TempDir())
		release := tools.Command{Directory: "/", Env: []string{"TARGETS=" + targets, hardlyCompressed}, Patience: 10 * time.Minute}
		release.Must(t, filepath.Join(clone, "scripts", "release"), out[len(out)-1])
	}
	sums := string(disk.Read(t, filepath.Join(out[0], "SHA256SUMS")))
	expect.Equal(t, sums, string(disk.Read(t, filepath.Join(out[1], "SHA256SUMS"))), "the second release")
	expect.Equal(t, 4, strings.Count(sums, "\n"), "files of the release")
	tools.Command{Directory: out[0]}.Must(t, "sha256sum", "--check", "SHA256SUMS")
	programs := expect.Value(filepath.Glob(filepath.Join(out[0], "sdtconvert-*-"+runtime.GOOS+"-*.tar.gz")))(t)
	tools.Must(t, "tar", "-C", out[0], "-xf", programs[0])
	directory := strings.TrimSuffix(programs[0], ".tar.gz")
	checkLinks(t, directory)
	program := filepath.Join(directory, "bin", "sdtconvert")
	commit := strings.TrimSpace(tools.Command{Directory: tools.Root()}.Must(t, "git", "rev-parse", "HEAD"))
	expect.Contains(t, tools.Must(t, program, "--version"), "("+commit+")", "the version")
}
