package packages

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/tools"
)

func TestMain(m *testing.M) {
	tools.Short(`TestInstall`)
	os.Exit(m.Run())
}

// run runs a script of scripts/ in a folder with these variables, and returns what it
// wrote to standard output.
func run(t *testing.T, folder, script string, variables []string, args ...string) string {
	t.Helper()
	// Go builds its library first for a machine that it has not built for.
	return tools.Command{Folder: folder, Env: variables, Patience: 10 * time.Minute}.Output(t, tools.Root("scripts", script), args...)
}

// files are those below a folder, with their permissions.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			found = append(found, fmt.Sprintf("%s %s", info.Mode(), strings.TrimPrefix(path, folder+"/")))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestInstall installs to where DESTDIR and PREFIX say, whatever the folder that
// it is run in.
func TestInstall(t *testing.T) {
	tools.Need(t, "bash", "install")
	if runtime.GOOS != "linux" {
		tools.Unavailable(t, "the install command is another one here")
	}
	for _, c := range []struct{ name, destdir, prefix, want string }{
		{"both", "%s/a stage", "/opt/sdt convert", "a stage/opt/sdt convert"},
		{"DESTDIR", "%s/stage", "", "stage/usr/local"},
		{"relative", "stage", "/usr", "stage/usr"},
		{"PREFIX", "", "%s/prefix", "prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			var variables []string
			for name, value := range map[string]string{"DESTDIR": c.destdir, "PREFIX": c.prefix} {
				variables = append(variables, name+"="+strings.Replace(value, "%s", folder, 1))
			}
			run(t, folder, "install", variables)
			want := []string{
				"-rwxr-xr-x " + c.want + "/bin/sdtconvert",
				"-rw-r--r-- " + c.want + "/include/sdt.h",
				"-rw-r--r-- " + c.want + "/include/sdt_forms.h",
				"-rw-r--r-- " + c.want + "/include/sdtconvert/freebsd/sys/sdt.h",
				"-rw-r--r-- " + c.want + "/include/sdtconvert/freebsd/sys/sdt_stubs.h",
				"Lrwxrwxrwx " + c.want + "/libexec/sdtconvert/bin/dtrace",
				"Lrwxrwxrwx " + c.want + "/libexec/sdtconvert/ld",
				"Lrwxrwxrwx " + c.want + "/libexec/sdtconvert/ld.bfd",
				"Lrwxrwxrwx " + c.want + "/libexec/sdtconvert/ld.gold",
				"Lrwxrwxrwx " + c.want + "/libexec/sdtconvert/ld.lld",
				"Lrwxrwxrwx " + c.want + "/libexec/sdtconvert/ld.mold",
				"-rw-r--r-- " + c.want + "/share/man/man1/sdtconvert.1",
			}
			if diff := cmp.Diff(want, files(t, folder)); diff != "" {
				t.Errorf("to be installed (-) and installed (+): %s", diff)
			}
			tools.Must(t, filepath.Join(folder, c.want, "bin/sdtconvert"), "help")
		})
	}
}
