package links

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// collected is a way to give a linker a program's objects in an archive.
type collected struct {
	name  string
	ar    string   // its operation
	flags []string // of the conversion
	whole bool     // link all members, and not only those of the index
}

var collections = []collected{
	{name: "searched", ar: "rcsD"},
	{name: "whole", ar: "rcsD", whole: true},
	{name: "notes", ar: "rcsD", flags: []string{"--stapsdt"}},
	{name: "thin", ar: "rcsDT"},
	{name: "thin-whole", ar: "rcsDT", whole: true},
}

// archive collects copies of objects, so that a thin archive has them in its
// directory, and converts them there.
func (k collected) archive(t *testing.T, m *machine, objects []string) string {
	t.Helper()
	words := append([]string{"archive", k.name, m.Name}, objects...)
	return files.Must(t, "libprobed.a", words, func(out string) error {
		args := []string{k.ar, out}
		for _, o := range objects {
			data, err := os.ReadFile(o)
			if err != nil {
				return err
			}
			member := filepath.Join(filepath.Dir(out), filepath.Base(o))
			if err := os.WriteFile(member, data, 0o666); err != nil {
				return err
			}
			args = append(args, member)
		}
		if _, err := tools.Try(m.Tool("ar"), args...); err != nil {
			return err
		}
		_, err := tools.Try(converter, append(tools.RecordsAlone(k.flags...), out)...)
		return err
	})
}

// TestArchives converts a program's objects in archives. A linker that searches one
// finds the program, main included, by the index of symbols.
func TestArchives(t *testing.T) {
	all := product.New(dimensions("linker", "archive")...)
	for n, c := range here(
		amd64Compiler(toolchains.GCC, "-O2"), amd64Compiler(toolchains.Clang, "-O2", "-ffunction-sections"),
		crossCompiler(arm, toolchains.GCC, "-O2"), crossCompiler(arm64, toolchains.GCC, "-O2"), crossCompiler(i386, toolchains.GCC, "-O2"), crossCompiler(loong64, toolchains.GCC, "-O2"), crossCompiler(riscv64, toolchains.Clang, "-O2"),
		crossCompiler(ppc64le, toolchains.GCC, "-O2"), crossCompiler(s390x, toolchains.GCC, "-O2"),
	) {
		for _, ld := range c.machine.linkers {
			for i, k := range collections {
				add := all.Add
				if !c.machine.Native() && i != n%len(collections) {
					add = all.AddToWhole // an archive has no machine
				}
				add(c.String()+"/"+ld.Name+"/"+k.name, append(c.values(), ld.Name, k.name), func(t *testing.T) {
					c.parallel(t, ld.Path, c.machine.Tool("ar"))
					k.check(t, c, ld)
				})
			}
		}
	}
	all.Run(t)
}

func (k collected) check(t *testing.T, c compiler, ld toolchains.Linker) {
	t.Helper()
	p := compileProgram(t, c, pairs, false)
	twin, err := modePIE.link(p, ld, nil, p.twin())
	unconverted(t, err)
	want := twin.examine(t, p.machine)
	if slices.Contains(k.flags, "--stapsdt") {
		want = withSemaphores(want)
	}
	objects := []string{p.probes, p.show, k.archive(t, p.machine, p.probed)}
	if k.whole {
		objects = []string{p.probes, p.show, "-Wl,--whole-archive", objects[2], "-Wl,--no-whole-archive"}
	}
	got := expect.Value(modePIE.link(p, ld, nil, objects))(t)
	got.check(t, p.machine, pairs, want)
}
