package line

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// searched are directories of libraries, in some of which a linker finds one only if "=" or
// ".." mean to it what is behind the colon.
var searched = []string{"sys/zz", "zz", "=/zz", "$SYSROOT/zz", "syszz", "x/zz", "other/zz"}

// Each linker takes the library that its rules say.
func TestSearchOfLinkers(t *testing.T) {
	tools.Need(t, "gcc", "ar")
	here := t.TempDir()
	t.Chdir(here)
	for i, directory := range searched {
		os.MkdirAll(directory, 0o777)
		disk.Write(t, "a.c", fmt.Appendf(nil, "int variable_of_%d;", i))
		tools.Must(t, "gcc", "-c", "a.c")
		tools.Must(t, "ar", "rcs", directory+"/libq.a", "a.o")
	}
	os.MkdirAll("other/sub", 0o777)
	expect.OK(t, os.Symlink("other/sub", "link"))
	families := map[string]Rules{"bfd": GNURules, "gold": GoldRules, "lld": LLDRules, "mold": MoldRules}
	for _, l := range toolchains.AMD64.Newest() {
		tools.Need(t, l.Path)
		path := expect.Value(exec.LookPath(l.Path))(t)
		rules, ok := families[l.Family]
		if !ok {
			t.Fatalf("no rules of %s", l.Family)
		}
		for _, words := range []string{
			"-L=/zz", "-L=zz", "-L$SYSROOT/zz", "-L=/x/../zz", "-L=/../zz", "-Llink/../zz", "-L ./link/../zz/", "-Lx/./zz", "-L.//zz", "-L$SYSROOT/../zz",
			"--sysroot=sys -L=/zz", "--sysroot=sys/ -L=/zz", "--sysroot=sys -L=zz", "--sysroot=sys/ -L=zz", "--sysroot=sys -L$SYSROOT/zz",
			"--sysroot=sys -L=/../zz", "--sysroot=sys -L=/x/../zz", "--sysroot=x --sysroot=sys -L=/zz", "-L=/zz --sysroot=sys", "-L=/zz --sysroot sys", "-sysroot=sys -L=/zz",
			"--sysroot=link/.. -L=/zz", "--sysroot=link/.. -L=/../zz", "-Lnone -Lzz -Lx/zz", "-Lx -l:zz/libq.a", "-Lx -l:./zz/libq.a", "-Lzz -l:libq.a",
			"-Lx -l:HERE/zz/libq.a", "-Lx -lHERE/zz/libq.a", "-Lx -l/zz/libq.a",
		} {
			words = strings.ReplaceAll(words, "HERE", here)
			args := append([]string{"-m", "elf_x86_64", "-r", "--whole-archive", "-o", "out.o"}, strings.Fields(words)...)
			if !strings.Contains(words, "-l") {
				args = append(args, "-lq")
			}
			want := nothing
			os.Remove("out.o")
			if _, err := tools.Try(path, args...); err == nil {
				want = libraryIn(t, "out.o")
			}
			got := nothing
			ln := Parse(args, rules)
			if found := ln.Candidates(&ln.Args[len(ln.Args)-1]); len(found) > 0 {
				got = libraryIn(t, found[0])
			}
			expect.Equal(t, want, got, "%s %s: the library", l.Family, words)
		}
	}
}

const nothing = "nothing"

// libraryIn returns the directory whose library a file is made of.
func libraryIn(t *testing.T, file string) string {
	t.Helper()
	data := disk.Read(t, file)
	for i, directory := range searched {
		if bytes.Contains(data, fmt.Appendf(nil, "variable_of_%d", i)) {
			return directory
		}
	}
	return nothing
}
