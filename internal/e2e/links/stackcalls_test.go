package links

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

// hardened has each form of a site, for compilers that harden code against speculation.
const hardened = `
#include <stdio.h>
void __dtrace_probe_app___go(int, int);
void __dtrace_probe_app___tail(int);
int __dtrace_isenabled_app___go(void);
int array[64];
#ifdef CALLS
__attribute__((noinline)) int calls(int n, int *p)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		if (p[i] > 3) {
			__dtrace_probe_app___go(i, sum);
			sum += array[p[i] & 63];
		}
	}
	return sum;
}
#endif
#ifdef TESTS
__attribute__((noinline)) int tests(int *p) { if (__dtrace_isenabled_app___go()) return array[p[0] & 63] + p[1]; return p[2]; }
#endif
#ifdef NOPS
#include <sdt.h>
SDT_PROVIDER_DEFINE(nops);
SDT_PROBE_DEFINE2(nops, , , nop, "int", "int");
__attribute__((noinline)) int nops(int n, int *p) { int s = p[n]; SDT_PROBE2(nops, , , nop, n, s); return array[s & 63] + p[s & 1]; }
#endif
#ifdef TAILS
__attribute__((noinline)) void tails(int n, int *p) { if (p[n & 3] > 5) __dtrace_probe_app___tail(p[n & 1]); }
#endif
int main(int argc, char **argv)
{
	int p[8] = { 5, 2, 9, 1, 7, 4, 6, 8 };
	(void)argv;
	for (int i = 0; i < 64; i++)
		array[i] = i * argc;
#ifdef CALLS
	printf("%d\n", calls(8, p));
#endif
#ifdef TESTS
	printf("%d\n", tests(p));
#endif
#ifdef NOPS
	printf("%d\n", nops(3, p));
#endif
#ifdef TAILS
	tails(2, p);
#endif
	return 0;
}
`

// TestSpeculativeLoadHardening converts and runs what does not read the address that a call leaves
// below the stack, and has the rest refused.
func TestSpeculativeLoadHardening(t *testing.T) {
	const slh = "-mspeculative-load-hardening"
	for _, c := range []struct {
		machine *toolchains.Machine
		flags   string
		options string // of the conversion
		refused bool
	}{
		{toolchains.AMD64, "-DCALLS -O0", "", true},
		{toolchains.AMD64, "-DCALLS -O2", "", true},
		{toolchains.AMD64, "-DCALLS -O2", "--stapsdt", true},
		{toolchains.AMD64, "-DTESTS -O2", "", true},
		{toolchains.AMD64, "-DTESTS -O0", "", true},
		{toolchains.AMD64, "-DTESTS -O2", "--stapsdt", false}, // tests call helpers
		{toolchains.AMD64, "-DCALLS -DTESTS -O2 -mno-red-zone", "", false},
		{toolchains.AMD64, "-DTAILS -O2", "", false},
		{toolchains.AMD64, "-DNOPS -O2", "", false},
		{toolchains.AMD64, "-DNOPS -O2", "--stapsdt", false},
		{toolchains.ARM64, "-DCALLS -DTESTS -DTAILS -DNOPS -O2", "", false},
		{toolchains.ARM64, "-DCALLS -DTESTS -DTAILS -DNOPS -O0", "--stapsdt", false},
	} {
		for _, cc := range []toolchains.Compiler{toolchains.OldClang, toolchains.Clang} {
			t.Run(strings.Join([]string{c.machine.Name, cc.Name, c.flags, c.options}, " "), func(t *testing.T) {
				t.Parallel()
				c.machine.Need(t)
				tools.Need(t, cc.Name)
				words := append(c.machine.CC(cc), slh, "-I"+tools.Root("include"))
				b := stackBuild{t, c.machine, append(words, strings.Fields(c.flags)...), t.TempDir()}
				b.compile("program", hardened)
				b.compare("program", strings.Fields(c.options), c.refused, "whose return address is read behind it; compile without "+slh)
			})
		}
	}
}

// stackBuild makes programs, in a directory.
type stackBuild struct {
	*testing.T
	machine   *toolchains.Machine
	compiler  []string
	directory string
}

func (b *stackBuild) path(name string) string { return filepath.Join(b.directory, name) }

func (b *stackBuild) compile(name, source string) {
	b.Helper()
	disk.Write(b, b.path(name+".c"), source)
	tools.Must(b, b.compiler[0], slices.Concat(b.compiler[1:], []string{"-c", "-o", b.path(name + ".o"), b.path(name + ".c")})...)
}

// compare converts an object, and runs it beside its twin, or has it refused with a text.
func (b *stackBuild) compare(name string, options []string, refused bool, text string) {
	b.Helper()
	object, converted := b.path(name+".o"), b.path("converted.o")
	out, err := tools.Try(converter, slices.Concat(tools.RecordsAlone(options...), []string{"-o", converted, object})...)
	if refused {
		if err == nil || !strings.Contains(out, text) {
			b.Errorf("%v, without %q:\n%s", err, text, out)
		}
		return
	}
	expect.OK(b, err, "%s", out)
	gcc := b.machine.CC(toolchains.GCC)
	run := func(exe, object string) string {
		stubs := b.path(exe + ".stubs.o")
		tools.Must(b, converter, "stubs", "-o", stubs, object)
		tools.Must(b, gcc[0], slices.Concat(gcc[1:], []string{"-static", "-o", b.path(exe), object, stubs})...)
		command := b.machine.Command(b.path(exe))
		return tools.Must(b, command[0], command[1:]...)
	}
	expect.Equal(b, run("twin", object), run("got", converted))
}
