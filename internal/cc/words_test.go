package cc

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

func TestOutputs(t *testing.T) {
	for line, want := range map[string]string{
		"gcc -c a.c":                           "a.o",
		"gcc -c a.c d/b.cc e.S":                "a.o b.o e.o",
		"gcc -o x.o -c a.c":                    "x.o",
		"gcc -c a.c -o x -o y":                 "y",
		"mycc -c -B/lib/gcc a.c":               "a.o",
		"gcc -oc a.c":                          "",
		"gcc a.c -o c":                         "",
		"gcc -Xlinker -c a.c -o c":             "",
		"gcc -c -E a.c -o x.o":                 "",
		"gcc -c -M a.c":                        "",
		"gcc -MM -c a.c":                       "",
		"gcc -c a.c -MD -MF b.d -MT c.c":       "a.o",
		"gcc --version":                        "",
		"gcc":                                  "",
		"gcc -c":                               "",
		"gcc -c a.c -o":                        "a.o", // which gcc does not write
		"clang -c -- -a.c":                     "-a.o",
		"clang -c a.c -working-directory=/d":   "/d/a.o",
		"clang -c a.c -working-directory /d":   "/d/a.o",
		"clang -c a.c -objcmt-migrate-all":     "a.o",
		"gcc -c a.c -objects/a.o":              "bjects/a.o",
		"ccache gcc -c a.c":                    "a.o",
		"taskset -c 0 gcc a.c -o x":            "x", // a program, which stays as it is
		"gcc -c a.c b.o c.a d.so":              "a.o",
		"mpicc -c a.c -I gcc":                  "a.o",
		"mpicc -c -o d/x.o -I gcc a.c":         "d/x.o",
		"mpicc -o d/x.o -I gcc -c a.c":         "a.o d/x.o",
		"nice -n 5 x-y-gcc-12.1 -c a.c":        "a.o",
		"env A=b.c distcc ./c++ -c a.c":        "a.o",
		"unknown -c a.c -o x.o":                "x.o",
		"gcc -c a.c @none":                     "a.o @none.o", // which gcc calls an input too
		"as a.s -o a.o":                        "a.o",
		"x-y-as a.s":                           "a.out",
		"as -o a a.s":                          "",
		"ld -r -o x.o a.o b.o":                 "x.o",
		"rustc --emit=obj -o x.o a.rs":         "x.o",
		"gcc a.c -o x.o":                       "x.o", // a program, which stays as it is
		"gcc -of=x.o a.c -c":                   "f=x.o",
		"ldc2 -c -of=x.o a.d":                  "x.o",
		"ldc2 --of=x.o a.d -c":                 "x.o",
		"dmd -c -ofx.o a.d":                    "x.o",
		"ldmd2 -c -od=d a.d b.d":               "d/a.o d/b.o",
		"ldc2 a.d -of=x":                       "",
		"sdtconvert-cc clang++-19 -c -o x a.c": "x",
	} {
		expect.Equal(t, want, strings.Join(outputs(strings.Fields(line)), " "), "%s", line)
	}
}

// flagsCompared is how many flags of each compiler a run of the tests compares.
const flagsCompared = 24

// Compilers take the next word for the value of a flag, or for a source, as this package
// does: each of its flags, and those that their help names.
func TestFlagsWithValues(t *testing.T) {
	t.Parallel()
	for _, c := range toolchains.Compilers {
		if c == toolchains.NamedGCC {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, c.Name)
			directory := t.TempDir()
			flags := slices.Sorted(slices.Values(strings.Fields(separateFlags)))
			help := tools.Command{AnyStatus: true}.Output(t, c.Name, helpOf(c)...)
			for _, match := range regexp.MustCompile(`(?m)^  (--?[A-Za-z][-\w]*)[ \n]`).FindAllStringSubmatch(help, -1) {
				flags = append(flags, match[1])
			}
			r := rand.New(rand.NewPCG(24, 0))
			r.Shuffle(len(flags), func(i, j int) { flags[i], flags[j] = flags[j], flags[i] })
			compared := 0
			for _, flag := range flags[:min(len(flags), tools.Cases(t, flagsCompared))] {
				if compareFlag(t, c, directory, flag) {
					compared++
				}
			}
			t.Logf("%d flags of %d that %s's help or this package names", compared, len(flags), c.Name)
		})
	}
}

func helpOf(c toolchains.Compiler) []string {
	if c.Clang {
		return []string{"--help-hidden"}
	}
	return []string{"-v", "--help"}
}

// planned matches the objects that a compiler says it would write.
var planned = regexp.MustCompile(`"?-o"? "?([-\w./]+\.o)\b`)

// unlike are flags that take the next word with some compilers and versions, and with others
// do not, or mean something else there.
var unlike = regexp.MustCompile(`^(-[GhRJbVe]|-Xf|-Hd|-Hf|-T(bss|data|text)|--entry|-aux-info|-dumpbase|-dumpbase-ext|-dumpdir` +
	`|-dependency-(dot|file)|-dsym-dir|-include-pch|-isystem-after|-undefined|-meabi` +
	`|-darwin-target-variant(-triple)?|-hlsl-entry|-fexperimental-openacc-macro-override)$`)

// compareFlag compares what a flag means with what the compiler says. It returns false for
// a flag that the compiler does not take.
func compareFlag(t *testing.T, c toolchains.Compiler, directory, flag string) bool {
	words := []string{c.Name, "-c", flag, "value.c", "source.c"}
	if unlike.MatchString(flag) || slices.Contains([]string{"-o", "--output", "-working-directory"}, flag) {
		return false
	}
	for _, name := range words[3:] { // clang removes the value of --serialize-diagnostics
		disk.Write(t, filepath.Join(directory, name), "")
	}
	out, err := tools.Command{Directory: directory}.Try(c.Name, append([]string{"-###"}, words[1:]...)...)
	if err != nil {
		return false
	}
	var want []string
	for _, match := range planned.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(want, match[1]) {
			want = append(want, match[1])
		}
	}
	if want == nil {
		return false // it stops, and no object changes
	}
	expect.Equal(t, want, outputs(words), "%q", words)
	return true
}
