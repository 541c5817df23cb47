package ld

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

const usesOnly = `
void __dtrace_probe_icmp_kernel_unreach_pkt__receive(int, unsigned char);
int main(int argc, char **argv)
{
	(void)argv;
	__dtrace_probe_icmp_kernel_unreach_pkt__receive(argc, 200);
	return 0;
}
`

const definesOnly = `
#include <sdt.h>
SDT_PROVIDER_DEFINE(icmp);
SDT_PROBE_DEFINE2(icmp, kernel, unreach, pkt__receive, "int", "unsigned char");
`

var noteNames = regexp.MustCompile(`Provider: (.*)\n\s*Name: (.*)\n.*\n\s*Arguments: (.*)\n`)

// namesInNotes are provider, name and arguments of all notes of a file.
func namesInNotes(t *testing.T, file string) []string {
	t.Helper()
	var all []string
	for _, m := range noteNames.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", file), -1) {
		all = append(all, strings.Join(m[1:], " "))
	}
	slices.Sort(all)
	return all
}

// TestNotesOfOtherInputs names notes by the definition of the probe: in an object, in an
// archive, in a shared library, in an object that was converted, in -r, and among code of
// link-time optimisation.
func TestNotesOfOtherInputs(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		t.Setenv("SDTCONVERT_FLAGS", "--stapsdt")
		disk.Write(t, "use.c", usesOnly)
		disk.Write(t, "define.c", definesOnly)
		flags := []string{"-B" + wrappers, l.Use(), "-O2", "-fPIC", "-I" + tools.Root("include")}
		tools.Must(t, "gcc", append(flags, "-c", "use.c", "define.c")...)
		tools.Must(t, "ar", "rcs", "libdefine.a", "define.o")
		tools.Must(t, "gcc", append(flags, "-shared", "define.o", "-o", "libshared.so")...)
		tools.Must(t, converter, "--stapsdt", "-o", "converted.o", "define.o")
		for name, inputs := range map[string][]string{
			"object": {"use.o", "define.o"}, "archive": {"use.o", "-L.", "-ldefine"}, "library": {"use.o", "./libshared.so"},
			"converted": {"converted.o", "use.o"}, "relocatable": {"-r", "-nostdlib", "use.o", "define.o"},
			"sources": {"use.c", "define.c"}, "generated": {"-flto", "use.c", "define.c"},
		} {
			if name == "generated" && !l.Can(toolchains.GCCPlugin) {
				continue
			}
			tools.Must(t, "gcc", slices.Concat(flags, inputs, []string{"-o", name + ".out"})...)
			if got, want := namesInNotes(t, name+".out"), []string{"icmp pkt__receive -4@%edi 1@%sil"}; !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}
