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

const others = `
struct three { int a, b, c; };
struct pair { int a; unsigned b; };
struct mixed { float a; int b; };
struct packed { char a; int b; short c; char d; } __attribute__((packed));
struct narrow { int a; };
union word { long a; char *b; };
void __dtrace_probe_pair(int, const struct pair, union word, char);
void __dtrace_probe_mixed(struct mixed);
void __dtrace_probe_packed(struct packed);
void __dtrace_probe_narrow(struct narrow);
void __dtrace_probe_real(int, double, long, int);
void __dtrace_probe_wide(int, __int128);
void __dtrace_probe_many(struct three, float);
void __dtrace_probe_whole(int, void *);
void f(int n, double d, struct three *s, struct pair p, union word w, struct mixed m, struct packed k, struct narrow r)
{
	__dtrace_probe_pair(n, p, w, n);
	__dtrace_probe_mixed(m);
	__dtrace_probe_packed(k);
	__dtrace_probe_narrow(r);
	__dtrace_probe_real(n, d, n, n);
	__dtrace_probe_wide(n, n);
	__dtrace_probe_many(*s, d);
	__dtrace_probe_whole(n, s);
}
`

// TestLeftOut has arguments that no note can tell, and what is said of them.
func TestLeftOut(t *testing.T) {
	for _, c := range []compiler{gcc, clang, arm64, {toolchains.LOONG64, toolchains.Clang}, ppc64, ppc64le, riscv64, s390x} {
		t.Run(c.machine.Name+"/"+c.cc.Name, func(t *testing.T) {
			command := c.machine.CC(c.cc)
			tools.Need(t, command[0], "readelf")
			source := filepath.Join(t.TempDir(), "others.c")
			disk.Write(t, source, others)
			object := strings.TrimSuffix(source, "c") + "o"
			tools.Must(t, command[0], append(command[1:], "-O2", "-g", "-c", source, "-o", object)...)
			inspected := found(`(?m)no note tells (.*)$`, tools.Must(t, converter, "inspect", object))
			want := []string{"argument 1, a structure", "argument 1, a structure, and the one behind it", "argument 2, a floating-point number, and those behind it", "argument 2, an integer of 16 bytes"}
			expect.Equal(t, want, inspected, "inspect")
			listed := found(`"left_out": "(.*)"`, tools.Must(t, converter, "inspect", "--json", object))
			expect.Equal(t, want, listed, "inspect --json")
			if out := tools.Must(t, converter, "--layout", "pairs", "-n", "-v", object); strings.Contains(out, "leave out") {
				t.Errorf("without notes: %s", out)
			}
			told := found(`(?m): (\w+: its notes leave out .*)$`, tools.Must(t, converter, "-v", "--stapsdt", object))
			want = []string{
				"many: its notes leave out " + want[1], "mixed: its notes leave out " + want[0], "narrow: its notes leave out " + want[0],
				"packed: its notes leave out " + want[0], "real: its notes leave out " + want[2], "wide: its notes leave out " + want[3],
			}
			expect.Equal(t, want, told, "-v")
			first := map[string]string{"amd64": "-4@%edi", "arm64": "-4@x0", "loong64": "-4@$r4", "ppc64": "-4@3", "ppc64le": "-4@3", "riscv64": "-4@a0", "s390x": "-4@%r2"}[c.machine.Name]
			second := map[string]string{"amd64": " 8@%rsi", "arm64": " 8@x1", "loong64": " 8@$r5", "ppc64": " 8@4", "ppc64le": " 8@4", "riscv64": " 8@a1", "s390x": " 8@%r3"}[c.machine.Name]
			pair := map[string]string{"amd64": " 8@%rdx -1@%cl", "arm64": " 8@x2 1@x3", "loong64": " 8@$r6 -1@$r7", "ppc64": " 8@5 1@6", "ppc64le": " 8@5 1@6", "riscv64": " 8@a2 1@a3", "s390x": " 8@%r4 1@%r5"}[c.machine.Name]
			args := map[string]string{"sdt:pair": first + second + pair, "sdt:real": first, "sdt:wide": first, "sdt:many": "", "sdt:whole": first + second}
			notes := notesOf(t, object)
			if len(notes) != 8 {
				t.Errorf("%d notes", len(notes))
			}
			checkArgs(t, notes, args)
		})
	}
}

const registerPairs = `
void __dtrace_probe_first(long long, int);
void __dtrace_probe_second(int, unsigned long long, int);
void __dtrace_probe_third(int, int, long long);
void __dtrace_probe_stack(int, int, int, long long, int);
void __dtrace_probe_behind(int, int, int, int, int, long long, short);
void f(int n, long long v)
{
	__dtrace_probe_first(v, n);
	__dtrace_probe_second(n, v, n);
	__dtrace_probe_third(n, n, v);
	__dtrace_probe_stack(n, n, n, v, n);
	__dtrace_probe_behind(n, n, n, n, n, v, n);
}
`

// TestRegisterPairs has integers of 8 bytes in pairs of registers, which no tracer reads: a register
// is a word to kernels, and gdb computes with words. The first of them ends the arguments; notes say
// where those are that are all on the stack.
func TestRegisterPairs(t *testing.T) {
	for _, c := range []compiler{{toolchains.ARM, toolchains.GCC}, {toolchains.ARM, toolchains.Clang}} {
		for _, set := range []string{"-marm", "-mthumb"} {
			for _, from := range []string{"-g", "--prototypes"} {
				if from == "-g" && c.cc.Clang {
					continue // which writes no declarations of functions for arm
				}
				t.Run(c.cc.Name+"/"+set+"/"+from, func(t *testing.T) {
					command := c.machine.CC(c.cc)
					tools.Need(t, command[0], "readelf")
					source := filepath.Join(t.TempDir(), "pairs.c")
					disk.Write(t, source, registerPairs)
					object := strings.TrimSuffix(source, "c") + "o"
					flags, options := []string{"-O2", set, "-g"}, []string{"--stapsdt"}
					if from == "--prototypes" {
						prototypes := filepath.Join(filepath.Dir(source), "prototypes")
						declarations := strings.Join(strings.SplitAfter(registerPairs, "\n")[1:6], "")
						disk.Write(t, prototypes, declarations)
						flags, options = flags[:2], append(options, "--prototypes", prototypes)
					}
					tools.Must(t, command[0], append(append(command[1:], flags...), "-c", source, "-o", object)...)
					told := found(`(?m): (\w+: its notes leave out .*)$`, tools.Must(t, converter, append(options, "-v", object)...))
					slices.Sort(told)
					want := []string{
						"first: its notes leave out argument 1, an integer of 8 bytes, in two registers, and the one behind it",
						"second: its notes leave out argument 2, an integer of 8 bytes, in two registers, and the one behind it",
						"stack: its notes leave out argument 4, an integer of 8 bytes, in two registers, and the one behind it",
						"third: its notes leave out argument 3, an integer of 8 bytes, in two registers",
					}
					expect.Equal(t, want, told, "-v")
					checkArgs(t, notesOf(t, object), map[string]string{
						"sdt:first": "", "sdt:second": "-4@r0", "sdt:third": "-4@r0 -4@r1", "sdt:stack": "-4@r0 -4@r1 -4@r2",
						"sdt:behind": "-4@r0 -4@r1 -4@r2 -4@r3 -4@[sp, #0] -8@[sp, #8] -2@[sp, #16]",
					})
				})
			}
		}
	}
}
