package ld

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// Each linker is given each flag with two objects behind it, and asked which it
// reads: where it reads the second alone, the first was a value. Where it reads
// none, it did not like the value, which tells nothing.
func TestValuesOfLinkers(t *testing.T) {
	tools.Long(t)
	tools.Need(t, "gcc")
	var all []string
	for _, name := range slices.Sorted(maps.Keys(longValues())) {
		all = append(all, "-"+name, "--"+name)
	}
	for _, name := range slices.Sorted(maps.Keys(longFlags())) {
		all = append(all, "-"+name, "--"+name)
	}
	for c := byte('A'); c <= 'z'; c++ {
		if c <= 'Z' || c >= 'a' {
			all = append(all, "-"+string(c))
		}
	}
	for _, l := range toolchains.AMD64.Newest() {
		if l.Family == "mold" {
			continue // It says of no file that it reads it.
		}
		linker := l.Path
		t.Run(linker, func(t *testing.T) {
			tools.Need(t, linker)
			help := tools.Must(t, linker, "--help")
			t.Chdir(t.TempDir())
			os.WriteFile("a.c", []byte("int a;"), 0o666)
			os.WriteFile("b.c", []byte("int b;"), 0o666)
			tools.Must(t, "gcc", "-c", "a.c", "b.c")
			object := disk.Read(t, "a.o")
			told := 0
			for _, name := range all {
				// Of names that begin with an o, one dash makes an output, for most.
				if known := strings.Contains(help, name); !known || isOutputFlag(name) {
					continue
				}
				// The flag before may have had it for an output.
				disk.Write(t, "a.o", object)
				if checkTakesValue(t, linker, name) {
					told++
				}
			}
			if told < 40 {
				t.Errorf("only %d flags told anything", told)
			}
		})
	}
}

// isOutputFlag reports whether the four disagree on what one dash makes of a name.
func isOutputFlag(name string) bool {
	return len(name) > 2 && name[1] != '-' && (name[1] == 'o' || twoDashes()[name[1:]])
}

// checkTakesValue compares what a linker makes of a flag with what the table says.
func checkTakesValue(t *testing.T, linker, name string) (told bool) {
	t.Helper()
	args := []string{"--trace", "-r", "-o", filepath.Join(t.TempDir(), "out"), name, "a.o", "b.o"}
	out, _ := tools.Try(linker, args...)
	read := func(file string) bool { return slices.Contains(strings.Split(out, "\n"), file) }
	if name == "-R" || strings.HasSuffix(name, "-just-symbols") {
		return false // such a file is read, but is not an input
	}
	if !read("b.o") || strings.Contains(out, "unknown") || strings.Contains(out, "unrecognized") {
		return false
	}
	want := "a.o b.o"
	if !read("a.o") {
		want = "b.o"
	}
	var files []string
	for _, arg := range parseLine(args, false).args {
		if arg.kind == inputArg {
			files = append(files, arg.value)
		}
	}
	expect.Equal(t, want, strings.Join(files, " "), "%s a.o b.o: inputs", name)
	return true
}
