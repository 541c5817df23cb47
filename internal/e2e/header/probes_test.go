package header

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// probe is what testdata's program says of a probe: how it defines it, and what
// happens to it when the program runs.
type probe struct {
	id, name string   // name is provider:module:function:name as people read it
	types    []string // `native` or `native -> translated`
	calls    []string // the words of each tracepoint that runs, in hex
	tests    int      // is-enabled tests
	self     bool     // defined where it is used, with a provider of its own
}

// programProbes returns those of c.c, cxx.cc and cxx2.cc. There are more: hdr___n and
// dead___code have tracepoints in a function that never runs.
func programProbes() []probe {
	const zero = "0"
	probes := []probe{
		{id: "hdr___n", name: "hdr:::n"},
		{id: "hdr___o", name: "hdr:::o-old", calls: []string{"1 2 3 4 5"}},
		{id: "hdr_macro_errno_errno", name: "hdr:macro:errno:errno", types: []string{"int"}, calls: []string{"1"}},
		{id: "two__words__func_a__b", name: "two-words::func:a-b", types: []string{"char *"}, calls: []string{zero}},
		{
			id: "hdr___widths", name: "hdr:::widths", types: []string{"char", "short", "int", "long", "long long"},
			calls: []string{"78 -2 -2 -4 -5", "0 78 -1 -2 -3"},
		},
		{
			id: "hdr___kinds", name: "hdr:::kinds", calls: []string{"-7 1 0 0 c8 0 1"},
			types: []string{"enum kind", "bool", "void *", "const volatile void *", "uint8_t", "char *", "int"},
		},
		{id: "hdr___elsewhere", name: "hdr:::elsewhere", types: []string{"int"}, calls: []string{"5"}},
		{id: "hdr___loop", name: "hdr:::loop", calls: []string{""}},
		{id: "hdr___from__cxx", name: "hdr:::from-cxx", calls: []string{""}, tests: 1},
		// The last of these passes another word, which the stub does not look at.
		{
			id: "cxx___in__template", name: "cxx:::in-template", types: []string{"T", "int"},
			calls: []string{"2", "ff", "63", "-4"}, tests: 3,
		},
		{id: "cxx___in__lambda", name: "cxx:::in-lambda", types: []string{"void *"}, calls: []string{zero, zero}},
		{
			id: "cxx___kinds", name: "cxx:::kinds", calls: []string{"-7 ff 1 0 0 0 -2"},
			types: []string{"enum plain", "enum class strict", "bool", "void *", "nullptr_t", "char *", "int"},
		},
		{id: "cxx___inline", name: "cxx:::inline", types: []string{"int"}, calls: []string{"1"}, self: true},
		{id: "cxx___generic", name: "cxx:::generic", types: []string{"T"}, calls: []string{"2", "ff", "63"}, self: true},
		{id: "plain", name: "sdt:::plain", calls: []string{""}, self: true},
		{id: "a__b___c__d___e", name: "a-b:::c-d-_e", calls: []string{""}, self: true},
		{id: "errno", name: "sdt:::errno", calls: []string{""}, self: true},
		{id: "tcp___send", name: "tcp:::send", types: []string{"int"}, calls: []string{"1", "2"}, tests: 1, self: true},
		{id: "d___2", name: "d:::2", types: []string{"int", "const char *"}, calls: []string{"1 0"}, self: true},
		{id: "d___3", name: "d:::3", types: []string{"int", "const char *", "int"}, calls: []string{"1 0 3"}, self: true},
	}
	for n := 4; n <= 12; n++ {
		probes = append(probes, probe{
			id: fmt.Sprint("d___", n), name: fmt.Sprint("d:::", n),
			types: slices.Repeat([]string{"int"}, n), calls: []string{words(n)}, self: true,
		})
	}
	return append(probes, arities()...)
}

// arities returns the probes of each number of arguments, in both generations and
// with translated types. Those of the new generation are called, and a few of the others.
func arities() []probe {
	var probes []probe
	for _, kind := range []string{"n", "o", "x", "y"} {
		for n := 0; n <= 7; n++ {
			p := probe{id: fmt.Sprintf("hdr___%s%d", kind, n), name: fmt.Sprintf("hdr:::%s%d", kind, n)}
			if kind == "o" || kind == "y" {
				p.name += "-old"
			}
			for i := range n {
				typ := fmt.Sprint("t", i)
				if kind == "x" || kind == "y" {
					typ += fmt.Sprint(" -> x", i)
				}
				p.types = append(p.types, typ)
			}
			if kind == "n" || n == 1 && (kind == "o" || kind == "x") {
				p.calls = []string{words(n)}
			}
			probes = append(probes, p)
		}
	}
	return probes
}

// words returns the words from 1 to n, hexadecimal.
func words(n int) string {
	var w []string
	for i := 1; i <= n; i++ {
		w = append(w, fmt.Sprintf("%x", i))
	}
	return strings.Join(w, " ")
}

// listing returns what a converted program prints of its linker sets and records.
func listing(probes []probe, providers ...string) []string {
	var lines []string
	for _, p := range providers {
		lines = append(lines, "provider "+p)
	}
	for _, p := range probes {
		lines = append(lines, fmt.Sprintf("probe %s(%s)", p.name, strings.Join(p.types, ", ")))
		for range p.calls {
			lines = append(lines, "probed "+p.name)
		}
		for range p.tests {
			lines = append(lines, "tested "+p.name)
		}
		if p.self {
			provider, _, _ := strings.Cut(p.name, ":")
			lines = append(lines, "provider "+provider)
		}
	}
	slices.Sort(lines)
	return lines
}

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
