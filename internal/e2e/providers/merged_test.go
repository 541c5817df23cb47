package providers

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// GNU ld -r joins converted objects with those that have only notes of a header, and an object that has both kinds. Notes of functions that a
// link drops go with them.
func TestMergedNotes(t *testing.T) {
	b := newBuild(t)
	b.write(t, "pv.d", "provider pv { probe one(int n); };\n")
	b.Must(t, b.dtrace, "-h", "-s", "pv.d")
	const own = "#include <sdt.h>\nint %(int i); int %(int i) { DTRACE_PROBE1(own___%, int, i); return i; }\n"
	b.write(t, "own.c", strings.ReplaceAll(own, "%", "live")+strings.ReplaceAll(own, "%", "dead"))
	b.write(t, "header.c", "#include \"pv.h\"\nint header(int i); int header(int i) { PV_ONE(i); return i; }\n")
	b.write(t, "both.c", "#include \"own.c\"\n#include \"header.c\"\n")
	b.write(t, "main.c", "int live(int); int header(int); int main(void) { return live(0) + header(0); }\n")
	include := "-I" + tools.Root("include")
	for _, name := range []string{"own", "header", "both", "main"} {
		b.Must(t, "gcc", "-O2", "-ffunction-sections", include, "-c", name+".c")
	}
	b.Must(t, converter, "ld", "--linker", "ld.bfd", "--", "-r", "own.o", "header.o", "-o", "merged.o")
	b.Must(t, converter, "both.o")
	b.Must(t, "ld.bfd", "-r", "both.o", "-o", "again.o")
	for _, object := range []string{"merged.o", "both.o", "again.o"} {
		for _, linker := range []string{"ld.bfd", "ld.lld-19"} {
			tools.Need(t, linker)
			directory := filepath.Join(t.TempDir(), "bin")
			expect.OK(t, tools.LinkAs(directory, expect.Value(exec.LookPath(linker))(t), "ld"))
			b.Must(t, "gcc", "-B"+directory, "-Wl,--gc-sections", "main.o", object, "-o", "program")
			notes := tools.Output(t, "readelf", "-n", filepath.Join(b.Directory, "program"))
			wanted := map[string]int{"live": 1, "one": 1}
			if object == "both.o" {
				wanted["dead"] = 0 // ld -r has made one section of the records of all functions
			}
			for name, want := range wanted {
				expect.Equal(t, want, strings.Count(notes, "Name: "+name+"\n"), "%s, %s: the probe %s in\n%s", object, linker, name, notes)
			}
		}
	}
	b.Must(t, converter, "--stapsdt", "merged.o") // which is known to have notes
}
