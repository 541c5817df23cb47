package archives

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// The C libraries of all machines and the C++ library have members of every kind.
// A function that some of them call, and none but one define, stands for a stub.
func TestLibrariesOfTheSystem(t *testing.T) {
	libraries := []struct {
		machine       *toolchains.Machine
		library, stub string
	}{
		{toolchains.AMD64, "libc.a", "abort"}, {toolchains.AMD64, "libstdc++.a", "free"},
		{toolchains.ARM, "libc.a", "abort"}, {toolchains.ARM64, "libc.a", "memset"}, {toolchains.I386, "libc.a", "abort"}, {toolchains.LOONG64, "libc.a", "abort"}, {toolchains.PPC64, "libc.a", "abort"}, {toolchains.PPC64LE, "libc.a", "abort"}, {toolchains.RISCV64, "libc.a", "abort"}, {toolchains.S390X, "libc.a", "abort"},
	}
	all := product.New("library", "flag")
	var covered []*toolchains.Machine
	for _, c := range libraries {
		if !c.machine.Has(toolchains.GCC) {
			continue // there is no C library of it in this suite
		}
		covered = append(covered, c.machine)
		for _, flag := range []string{"", "--stapsdt"} {
			flags := append([]string{"--symbol", c.stub}, strings.Fields(flag)...)
			name, add := c.machine.Tool(c.library), all.Add
			if flag != "" && c.machine != toolchains.AMD64 {
				add = all.AddToWhole
			}
			add(name+" "+strings.Join(flags, " "), []string{name, flag}, func(t *testing.T) {
				t.Parallel()
				tools.Need(t, c.machine.Tools("gcc", "g++", "ar")...)
				path := strings.TrimSpace(tools.Output(t, c.machine.Tool("gcc"), "-print-file-name="+c.library))
				checkLibrary(t, path, c.machine.Tool("ar"), flags)
			})
		}
	}
	toolchains.Covers(t, covered...)
	all.Run(t)
}

// checkLibrary converts a library, and its members by themselves, which are collected
// again.
func checkLibrary(t *testing.T, path, ar string, flags []string) {
	t.Helper()
	directory := t.TempDir()
	objects := filepath.Join(directory, "objects")
	expect.OK(t, os.Mkdir(objects, 0o777))
	tools.Must(t, converter, append(flags[:len(flags):len(flags)], "-o", filepath.Join(directory, "lib.a"), path)...)
	names := strings.Fields(tools.Output(t, ar, "t", path))
	for _, args := range [][]string{
		append([]string{ar, "x", path}, names...),
		append(append([]string{converter}, flags...), names...),
		append([]string{"chmod", "0644"}, names...),
		append([]string{ar, "qcsD", "../collected.a"}, names...),
	} {
		tools.Command{Directory: objects}.Must(t, args[0], args[1:]...)
	}
	same(t, directory, "lib.a", "collected.a")
	if before, err := os.ReadFile(path); err != nil || string(before) == string(read(t, directory, "lib.a")) {
		t.Errorf("%v: nothing was converted", err)
	}
}
