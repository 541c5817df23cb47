package archives

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// The C libraries of three machines and the C++ library have members of every kind.
// A function that some of them call, and none but one define, stands for a stub.
func TestLibrariesOfTheSystem(t *testing.T) {
	for _, c := range []struct{ prefix, library, stub string }{
		{"", "libc.a", "abort"}, {"", "libstdc++.a", "free"},
		{"aarch64-linux-gnu-", "libc.a", "memset"}, {"riscv64-linux-gnu-", "libc.a", "abort"},
	} {
		for _, flags := range [][]string{{"--symbol", c.stub}, {"--symbol", c.stub, "--stapsdt"}} {
			t.Run(c.prefix+c.library+" "+strings.Join(flags, " "), func(t *testing.T) {
				t.Parallel()
				tools.Need(t, c.prefix+"gcc", c.prefix+"g++", c.prefix+"ar")
				path := strings.TrimSpace(tools.Output(t, c.prefix+"gcc", "-print-file-name="+c.library))
				checkLibrary(t, path, c.prefix+"ar", flags)
			})
		}
	}
}

// checkLibrary converts a library, and its members by themselves, which are collected
// again.
func checkLibrary(t *testing.T, path, ar string, flags []string) {
	t.Helper()
	folder := t.TempDir()
	objects := filepath.Join(folder, "objects")
	if err := os.Mkdir(objects, 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(converter, append(flags[:len(flags):len(flags)], "-o", filepath.Join(folder, "lib.a"), path)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, tools.Shortened(string(out)))
	}
	names := strings.Fields(tools.Output(t, ar, "t", path))
	for _, args := range [][]string{
		append([]string{ar, "x", path}, names...),
		append(append([]string{converter}, flags...), names...),
		append([]string{"chmod", "0644"}, names...),
		append([]string{ar, "qcsD", "../collected.a"}, names...),
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = objects
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, tools.Shortened(string(out)))
		}
	}
	same(t, folder, "lib.a", "collected.a")
	if before, err := os.ReadFile(path); err != nil || string(before) == string(read(t, folder, "lib.a")) {
		t.Errorf("%v: nothing was converted", err)
	}
}
