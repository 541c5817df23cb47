package attach

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// apart are sources of one program, of which one uses probes that others define.
var apart = map[string]string{
	"use.c": `void __dtrace_probe_icmp_kernel_unreach_pkt__receive(int, unsigned char);
void __dtrace_probe_icmp_kernel_unreach_pkt__send(long);
int main(int argc, char **argv)
{
	(void)argv;
	__dtrace_probe_icmp_kernel_unreach_pkt__receive(argc, 200);
	__dtrace_probe_icmp_kernel_unreach_pkt__send(argc);
	return 0;
}
`,
	"define.c": `#include <sdt.h>
SDT_PROVIDER_DECLARE(icmp);
SDT_PROBE_DEFINE2(icmp, kernel, unreach, pkt__receive, "int", "unsigned char");
SDT_PROBE_DEFINE1(icmp, kernel, unreach, pkt__send, "long");
`,
	"provider.c": `#include <sdt.h>
SDT_PROVIDER_DEFINE(icmp);
`,
}

func compileApart(t *testing.T, c compiler) (use, define, provider string) {
	t.Helper()
	tools.Need(t, c.machine.CC(c.cc)[0], c.driver(), "readelf")
	dir := t.TempDir()
	object := func(source string) string {
		path := filepath.Join(dir, source)
		disk.Write(t, path, apart[source])
		out, command := path[:len(path)-1]+"o", c.machine.CC(c.cc)
		tools.Must(t, command[0], append(command[1:], "-O2", "-fPIC", "-I"+include, "-c", path, "-o", out)...)
		return out
	}
	return object("use.c"), object("define.c"), object("provider.c")
}

// named returns the notes of an image, without addresses.
func named(t *testing.T, image string) []string {
	t.Helper()
	var all []string
	for _, n := range notesOf(t, image) {
		all = append(all, n.provider+":"+n.name+" "+n.args)
	}
	slices.Sort(all)
	return all
}

var byDefinition = map[*toolchains.Machine][]string{
	toolchains.AMD64:   {"icmp:pkt__receive -4@%edi 1@%sil", "icmp:pkt__send -8@%rdi"},
	toolchains.ARM:     {"icmp:pkt__receive -4@r0 1@r1", "icmp:pkt__send -4@r0"},
	toolchains.ARM64:   {"icmp:pkt__receive -4@x0 1@x1", "icmp:pkt__send -8@x0"},
	toolchains.I386:    {"icmp:pkt__receive -4@0(%esp) 1@4(%esp)", "icmp:pkt__send -4@0(%esp)"},
	toolchains.LOONG64: {"icmp:pkt__receive -4@$r4 1@$r5", "icmp:pkt__send -8@$r4"},
	toolchains.PPC64:   {"icmp:pkt__receive -4@3 1@4", "icmp:pkt__send -8@3"},
	toolchains.PPC64LE: {"icmp:pkt__receive -4@3 1@4", "icmp:pkt__send -8@3"},
	toolchains.RISCV64: {"icmp:pkt__receive -4@a0 1@a1", "icmp:pkt__send -8@a0"},
	toolchains.S390X:   {"icmp:pkt__receive -4@%r2 1@%r3", "icmp:pkt__send -8@%r2"},
}

// TestNamesOfOtherFiles converts together what belongs together: notes are called as
// the definition says, wherever it is, and as records of the linked program are.
func TestNamesOfOtherFiles(t *testing.T) {
	for _, c := range here(gcc, clang, arm, arm64, i386, loong64, ppc64, ppc64le, riscv64, s390x) {
		t.Run(c.machine.Name+"/"+c.cc.Name, func(t *testing.T) {
			t.Parallel()
			want := byDefinition[c.machine]
			for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
				use, define, provider := compileApart(t, c)
				files := []string{use, define, provider}
				args := []string{"convert", "--stapsdt"}
				for _, i := range order {
					args = append(args, files[i])
				}
				tools.Must(t, converter, args...)
				out := filepath.Join(filepath.Dir(use), "program")
				tools.Must(t, c.driver(), append(files, "-o", out)...)
				expect.Equal(t, want, named(t, out))
				checkNotes(t, out)
			}
			use, define, provider := compileApart(t, c)
			archive := filepath.Join(filepath.Dir(use), "all.a")
			tools.Must(t, c.machine.Tool("ar"), "rcs", archive, use, define, provider)
			tools.Must(t, converter, "--stapsdt", archive)
			expect.Equal(t, want, named(t, archive))
			tools.Must(t, converter, "--stapsdt", use)
			if alone := named(t, use); !strings.HasPrefix(alone[0], "sdt:icmp_kernel_unreach_pkt__receive ") {
				t.Errorf("alone: %q", alone)
			}
		})
	}
}
