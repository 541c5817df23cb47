package header

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// What testdata/semaphores.c prints: a number in the semaphore, and how many tests of
// C and of C++ are true.
const raised = "0 0 0\n1 1 5\n256 1 5\n65535 1 5\n0 0 0\nevaluated 6\nwaited\n"

// TestSemaphores has a program count semaphores up that its tests have defined, linked
// as they are by all linkers, and looks at the section that they are in.
func TestSemaphores(t *testing.T) {
	all := product.New(wayDimensions...)
	for _, c := range []toolchain{
		nops[0], nops[1],
		{toolchains.AMD64, toolchains.GCC, []string{"-O0", "-fPIC", "-DSDT_CALLS"}},
		{toolchains.AMD64, toolchains.OldClang, []string{"-O0", "-fPIC"}},
	} {
		for _, linker := range linkers {
			for _, mode := range []string{"-no-pie", "-pie", "-static"} {
				addSemaphores(all, c, way{linker: linker, mode: mode, gc: mode == "-pie"})
			}
		}
	}
	for _, m := range toolchains.Foreign() {
		addSemaphores(all, toolchain{m, toolchains.GCC, []string{"-O2"}}, way{linker: m.Linker("bfd"), mode: "-static"}, m.QEMU)
	}
	all.Run(t)
}

func addSemaphores(all *product.Tests, c toolchain, w way, command ...string) {
	all.Add(c.String()+"/"+w.String(), w.values(c), func(t *testing.T) {
		t.Parallel()
		c.machine.Need(t)
		c.need(t, w.linker)
		link := append([]string{c.machine.Tool("gcc")}, w.flags(t)...)
		for _, source := range []string{"semaphores.c", "semaphores.cc"} {
			object := c.object(t, source)
			if slices.Contains(c.flags, "-DSDT_CALLS") {
				object = convert(t, object, "--layout=pairs")
			}
			link = append(link, object)
		}
		exe := output(t, "semaphores", link...)
		command = append(command, exe)
		if got := tools.Must(t, command[0], command[1:]...); got != raised {
			t.Errorf("it prints\n%s, not\n%s", got, raised)
		}
		checkSection(t, exe, "both", "waited", "illumos")
	})
}

// checkSection looks for one semaphore of each name, each a half word in a word of its
// own, in a section that begins a page.
func checkSection(t *testing.T, path string, names ...string) {
	t.Helper()
	f := disk.OpenELF(t, path)
	section := f.Section(".probes")
	if section == nil || section.Addralign != 4096 || section.Addr%4096 != 0 {
		t.Fatalf("%s: .probes is %+v", path, section)
	}
	symbols := expect.Value(f.Symbols())(t)
	var found []string
	for _, s := range symbols {
		name, ok := strings.CutPrefix(s.Name, "__dtrace_semaphore_sem___")
		if !ok {
			continue
		}
		found = append(found, name)
		if s.Size != 2 || s.Value%4 != 0 || s.Value < section.Addr+4 || s.Value+4 > section.Addr+section.Size ||
			elf.ST_TYPE(s.Info) != elf.STT_OBJECT || f.Sections[s.Section].Name != ".probes" {
			t.Errorf("%s: %+v", path, s)
		}
	}
	slices.Sort(found)
	slices.Sort(names)
	if !slices.Equal(found, names) {
		t.Errorf("%s has the semaphores %v", path, found)
	}
}

// TestSemaphoresLTO has semaphores defined by code that is generated in the link.
func TestSemaphoresLTO(t *testing.T) {
	for _, lto := range toolchains.LTOs() {
		w := way{linker: lto.Linker, mode: "-pie", gc: true}
		chain := toolchain{toolchains.AMD64, lto.Compiler, []string{"-O2", "-fPIE", lto.Flag}}
		t.Run(chain.String()+"/"+w.String(), func(t *testing.T) {
			t.Parallel()
			chain.need(t, w.linker)
			link := append(append(chain.machine.CC(lto.Compiler), w.flags(t)...), lto.Flag)
			exe := output(t, "semaphores", append(link, chain.object(t, "semaphores.c"), chain.object(t, "semaphores.cc"))...)
			if got := tools.Must(t, exe); got != raised {
				t.Errorf("it prints\n%s, not\n%s", got, raised)
			}
			checkSection(t, exe, "both", "waited", "illumos")
		})
	}
}
