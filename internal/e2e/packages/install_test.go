package packages

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func TestMain(m *testing.M) {
	tools.Short(`TestInstallHelp`) // others build the program in another way than tests do, from its first package on
	os.Exit(m.Run())
}

// run runs a script of scripts/ in a directory with these variables, and returns what it
// wrote to standard output.
func run(t *testing.T, directory, script string, variables []string, args ...string) string {
	t.Helper()
	// Go builds its library first for a machine that it has not built for.
	return tools.Command{Directory: directory, Env: variables, Patience: 10 * time.Minute}.Output(t, tools.Root("scripts", script), args...)
}

// files returns those below a directory, with their permissions.
func files(t *testing.T, directory string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			found = append(found, fmt.Sprintf("%s %s", info.Mode(), strings.TrimPrefix(path, directory+"/")))
		}
		return err
	})
	expect.OK(t, err)
	return found
}

// installed returns the files that are installed below a prefix, whatever installs them, with
// their permissions.
func installed(prefix string) (all []string) {
	for _, file := range []string{
		"-rwxr-xr-x bin/sdtconvert",
		"-rw-r--r-- include/sdt.h",
		"-rw-r--r-- include/sdt_forms.h",
		"-rw-r--r-- include/sdtconvert/freebsd/sys/sdt.h",
		"-rw-r--r-- include/sdtconvert/freebsd/sys/sdt_stubs.h",
		"-rw-r--r-- include/sdtconvert/usdt.h",
		"Lrwxrwxrwx libexec/sdtconvert/bin/dtrace",
		"Lrwxrwxrwx libexec/sdtconvert/ld",
		"Lrwxrwxrwx libexec/sdtconvert/ld.bfd",
		"Lrwxrwxrwx libexec/sdtconvert/ld.gold",
		"Lrwxrwxrwx libexec/sdtconvert/ld.lld",
		"Lrwxrwxrwx libexec/sdtconvert/ld.mold",
		"Lrwxrwxrwx libexec/sdtconvert/sdtconvert-cc",
		"-rw-r--r-- share/bash-completion/completions/sdtconvert",
		"-rw-r--r-- share/fish/vendor_completions.d/sdtconvert.fish",
	} {
		mode, path, _ := strings.Cut(file, " ")
		all = append(all, mode+" "+filepath.Join(prefix, path))
	}
	return all
}

// TestInstall installs to where DESTDIR and PREFIX say, whatever the directory that
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
			directory := t.TempDir()
			var variables []string
			for name, value := range map[string]string{"DESTDIR": c.destdir, "PREFIX": c.prefix} {
				variables = append(variables, name+"="+strings.Replace(value, "%s", directory, 1))
			}
			out := run(t, directory, "install", variables)
			want := append(installed(c.want),
				"-rw-r--r-- "+c.want+"/share/man/man1/sdtconvert.1", "-rw-r--r-- "+c.want+"/share/zsh/site-functions/_sdtconvert")
			expect.Equal(t, want, files(t, directory), "to be installed (-) and installed (+)")
			for _, file := range want {
				_, path, _ := strings.Cut(file, " ")
				if !strings.Contains(out, "/"+path+" -> ") && !strings.Contains(out, "/"+path+"\n") {
					t.Errorf("%s is not among what was printed:\n%s", path, out)
				}
			}
			tools.Must(t, filepath.Join(directory, c.want, "bin/sdtconvert"), "help")
			complete(t, filepath.Join(directory, c.want))
			uninstall(t, directory, filepath.Join(directory, c.want), variables)
		})
	}
}

// complete has bash complete a command line with what is installed below a directory.
func complete(t *testing.T, target string) {
	t.Helper()
	// The package bash-completion has the function that divides the line into words.
	const script = `
		. "$0/share/bash-completion/completions/sdtconvert"
		_init_completion() { cur=list words=(sdtconvert -j 2 li) cword=3 prev=2 cur=li; }
		COMP_TYPE=9 __start_sdtconvert
		echo "${COMPREPLY[@]}"`
	t.Setenv("PATH", filepath.Join(target, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	expect.Equal(t, "list", strings.TrimSpace(tools.Must(t, "bash", "-c", script, target)), "bash completes li")
}

// uninstall removes what is installed, and nothing else.
func uninstall(t *testing.T, directory, target string, variables []string) {
	t.Helper()
	other := filepath.Join(target, "libexec/sdtconvert/other")
	disk.Write(t, other, "")
	run(t, directory, "install", variables, "--uninstall")
	if left := files(t, directory); len(left) != 1 || !strings.HasSuffix(left[0], "/other") {
		t.Errorf("not removed: %q", left)
	}
	expect.OK(t, os.Remove(other))
	expect.Equal(t, "", run(t, directory, "install", variables, "--uninstall"), "removed twice")
	disk.Absent(t, filepath.Join(target, "libexec/sdtconvert"))
}

// TestInstallHelp asks for help, and gives arguments that there are not.
func TestInstallHelp(t *testing.T) {
	tools.Need(t, "bash")
	directory := t.TempDir()
	variables := []string{"PREFIX=" + directory}
	out := run(t, directory, "install", variables, "--help")
	if !strings.HasPrefix(out, "Builds sdtconvert") || !strings.Contains(out, "--uninstall") || strings.Contains(out, "set -") {
		t.Errorf("help: %s", out)
	}
	if err := exec.Command("bash", tools.Root("scripts", "install"), "--all").Run(); err == nil {
		t.Error("an unknown argument is not an error")
	}
	if left := files(t, directory); len(left) > 0 {
		t.Errorf("installed: %q", left)
	}
}
