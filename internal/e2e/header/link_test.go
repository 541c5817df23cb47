package header

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var (
	linkers = toolchains.AMD64.Linkers()
	bfd     = toolchains.AMD64.Linker("bfd")
)

// toolchain is a C and a C++ compiler with flags.
type toolchain struct {
	machine *toolchains.Machine
	cc      toolchains.Compiler
	flags   []string
}

// stubFlags are the flags that make calls of all tracepoints and tests, as a twin needs
// whose stubs print.
var stubFlags = []string{"-DSDT_CALLS", "-DSDT_NO_SEMAPHORES"}

// stubbed returns the same toolchain with those flags.
func (c toolchain) stubbed() toolchain {
	return toolchain{c.machine, c.cc, append(slices.Clone(c.flags), stubFlags...)}
}

// probes returns those of the program as it is compiled: a test that reads a semaphore has
// no record.
func (c toolchain) probes() []probe {
	probes := programProbes()
	if !slices.Contains(c.flags, "-DSDT_NO_SEMAPHORES") {
		for i := range probes {
			probes[i].tests = 0
		}
	}
	return probes
}

func (c toolchain) String() string {
	return strings.Join(append(c.machine.CC(c.cc), c.flags...), " ")
}

func (c toolchain) need(t *testing.T, l toolchains.Linker) {
	t.Helper()
	tools.Need(t, c.machine.CC(c.cc)[0], c.machine.CXX(c.cc)[0], c.machine.Tool("gcc"), l.Path)
}

// object compiles a source, and converts it unless that is left to the caller.
func (c toolchain) object(t *testing.T, source string, flags ...string) string {
	t.Helper()
	command := c.machine.CC(c.cc)
	if filepath.Ext(source) == ".cc" {
		command = c.machine.CXX(c.cc)
		flags = append(flags, "-fno-exceptions")
	}
	return compile(t, strings.Join(command, " "), source, append(slices.Clone(c.flags), flags...)...)
}

func convert(t *testing.T, object string, flags ...string) string {
	t.Helper()
	return output(t, filepath.Base(object), append(append([]string{converter}, flags...), object)...)
}

// way is how a program is linked and run.
type way struct {
	linker toolchains.Linker
	mode   string // a flag of the driver's
	gc     bool
	layout string
	bare   bool // without a reader in the program
}

func (w way) String() string {
	name := w.linker.Path + w.mode
	if w.gc {
		name += " gc"
	}
	return strings.TrimSpace(name + " " + w.layout)
}

func (w way) flags(t *testing.T) []string {
	driver := expect.Value(files.Driver(w.linker.Path))(t)
	flags := []string{"-B" + driver, w.mode}
	if w.gc {
		flags = append(flags, "-Wl,--gc-sections")
	}
	return flags
}

// link converts and links the program of sources and returns what is to be run,
// and the image that holds the probes.
func (c toolchain) link(t *testing.T, w way, sources []string, define ...string) (exe, image string) {
	t.Helper()
	var convertFlags, show, library []string
	if w.layout != "" {
		convertFlags = []string{"--layout", w.layout}
		show = []string{"-DRELATIVE"}
	}
	if w.mode == "-shared" {
		library = []string{"-DLIBRARY"}
	}
	var objects []string
	for _, s := range sources {
		objects = append(objects, convert(t, c.object(t, s, define...), convertFlags...))
	}
	if w.bare {
		objects = append(objects, c.object(t, "main.c", library...))
	} else {
		objects = append(objects, c.object(t, "main.c", append(library, "-DSHOW")...), c.object(t, "show.c", show...))
	}
	command := append([]string{c.machine.Tool("gcc")}, w.flags(t)...)
	if w.mode != "-shared" {
		exe = output(t, "program", append(command, objects...)...)
		return exe, exe
	}
	image = output(t, "libprogram.so", append(command, objects...)...)
	start := c.object(t, "start.c")
	exe = output(t, "program", c.machine.Tool("gcc"), "-pie", start, image, "-Wl,-rpath,"+filepath.Dir(image))
	return exe, image
}

var (
	programSources   = []string{"c.c", "cxx.cc", "cxx2.cc"}
	programProviders = []string{"hdr", "two-words", "cxx"}
)

// What a linker may drop that collects garbage: hdr___n itself stays.
var deadLines = []string{"probe dead:::code(int)", "probed dead:::code", "probed hdr:::n", "provider dead"}

// checkProgram runs the program and compares what it sees. Where garbage is
// collected the dead function is all there or not at all.
func (c toolchain) checkProgram(t *testing.T, exe string, gc bool, command ...string) {
	t.Helper()
	command = append(command, exe)
	got := sortedLines(tools.Must(t, command[0], command[1:]...))
	want := listing(c.probes(), programProviders...)
	if !gc || slices.Contains(got, deadLines[0]) {
		want = append(want, deadLines...)
	}
	checkLines(t, exe, got, want)
}

var (
	nops = []toolchain{
		{toolchains.AMD64, toolchains.GCC, []string{"-O2", "-fPIC", "-ffunction-sections", "-fdata-sections"}},
		{toolchains.AMD64, toolchains.Clang, []string{"-Os", "-fPIC", "-ffunction-sections", "-fdata-sections"}},
	}
	native = append(nops, nops[0].stubbed(), nops[1].stubbed())
)

// TestLink links with all linkers in all modes.
func TestLink(t *testing.T) {
	all := product.New(wayDimensions...)
	for _, c := range native {
		for _, linker := range linkers {
			for _, mode := range []string{"-no-pie", "-pie", "-shared", "-static"} {
				for _, gc := range []bool{false, true} {
					addWay(all, c, way{linker: linker, mode: mode, gc: gc})
				}
			}
			addWay(all, c, way{linker: linker, mode: "-shared", gc: true, layout: "relative"})
		}
	}
	all.Run(t)
}

// TestFlags links what other compilers and flags make.
func TestFlags(t *testing.T) {
	all := product.New(wayDimensions...)
	for _, c := range []toolchain{
		{toolchains.AMD64, toolchains.GCC, []string{"-O0", "-fPIC"}},
		{toolchains.AMD64, toolchains.GCC, []string{"-O3", "-fPIC", "-fno-plt", "-g"}},
		{toolchains.AMD64, toolchains.GCC, []string{"-O2", "-fno-pic", "-fno-pie"}},
		{toolchains.AMD64, toolchains.OldClang, []string{"-O0", "-fPIC"}},
		{toolchains.AMD64, toolchains.OldClang, []string{"-O2", "-fPIC", "-fno-plt"}},
		{toolchains.AMD64, toolchains.Clang, []string{"-O2", "-fPIC", "-fno-plt", "-g"}},
		{toolchains.AMD64, toolchains.GCC, []string{"-O2", "-fPIC", "-masm=intel"}},
		{toolchains.AMD64, toolchains.GCC, []string{"-O0", "-fPIC", "-DSDT_CALLS"}},
		{toolchains.AMD64, toolchains.GCC, []string{"-O3", "-fPIC", "-fno-plt", "-g", "-DSDT_CALLS", "-DSDT_NO_SEMAPHORES"}},
		{toolchains.AMD64, toolchains.GCC, []string{"-O2", "-fno-pic", "-fno-pie", "-DSDT_NO_SEMAPHORES"}},
		{toolchains.AMD64, toolchains.OldClang, []string{"-O0", "-fPIC", "-DSDT_NO_SEMAPHORES"}},
		{toolchains.AMD64, toolchains.OldClang, []string{"-O2", "-fPIC", "-fno-plt", "-DSDT_CALLS"}},
	} {
		mode := "-pie"
		if slices.Contains(c.flags, "-fno-pie") {
			mode = "-no-pie"
		}
		for _, linker := range []toolchains.Linker{bfd, toolchains.AMD64.Linker("lld")} {
			addWay(all, c, way{linker: linker, mode: mode, gc: true})
		}
	}
	all.Run(t)
}

var wayDimensions = []string{"machine", "compiler", "linker", "mode", "garbage collected", "layout"}

// values returns one of each of wayDimensions.
func (w way) values(c toolchain) []string {
	return []string{c.machine.Name, strings.Join(append(c.machine.CC(c.cc), c.flags...), " "), w.linker.Path, w.mode, strconv.FormatBool(w.gc), w.layout}
}

func addWay(all *product.Tests, c toolchain, w way) {
	all.Add(c.String()+"/"+w.String(), w.values(c), func(t *testing.T) {
		t.Parallel()
		c.need(t, w.linker)
		exe, _ := c.link(t, w, programSources)
		c.checkProgram(t, exe, w.gc)
	})
}

// TestKept collects garbage in a program that has no reader: nothing refers to
// the linker sets, and tracers look for them from outside.
func TestKept(t *testing.T) {
	all := product.New("compiler", "stubs", "linker")
	for _, c := range native {
		for _, linker := range linkers {
			all.Add(c.String()+"/"+linker.Path, []string{c.cc.Name, strconv.FormatBool(slices.Contains(c.flags, stubFlags[0])), linker.Path}, func(t *testing.T) {
				t.Parallel()
				c.need(t, linker)
				_, image := c.link(t, way{linker: linker, mode: "-pie", gc: true, bare: true}, programSources)
				want := map[string]int{"set_sdt_providers_set": len(programProviders)}
				for _, p := range programProbes() {
					want["set_sdt_probes_set"]++
					want["set_sdt_argtypes_set"] += len(p.types)
					if p.self {
						want["set_sdt_providers_set"]++
					}
				}
				checkSets(t, image, want)
			})
		}
	}
	all.Run(t)
}

// checkSets counts the entries of sets. A linker may keep the dead probe.
func checkSets(t *testing.T, image string, want map[string]int) {
	t.Helper()
	f := disk.OpenELF(t, image)
	for name, n := range want {
		s := f.Section(name)
		if s == nil {
			t.Errorf("%s has no section %s", image, name)
			continue
		}
		if got := int(s.Size / 8); got != n && got != n+1 {
			t.Errorf("%s has %d entries in %s, not %d", image, got, name, n)
		}
		if s.Flags&elf.SHF_WRITE == 0 {
			t.Errorf("%s: %s is not writable", image, name)
		}
	}
}

// TestRelocatable links converted objects with -r first. The output of one that
// forgets what is to be retained must not be linked with --gc-sections.
func TestRelocatable(t *testing.T) {
	all := product.New("merging linker", "linker")
	c := nops[0]
	for _, first := range linkers {
		if !first.Can(toolchains.GroupsWithR) {
			continue
		}
		for _, final := range linkers {
			all.Add(first.Path+"/"+final.Path, []string{first.Path, final.Path}, func(t *testing.T) {
				t.Parallel()
				c.need(t, first)
				tools.Need(t, final.Path)
				merge := []string{first.Path, "-r"}
				for _, s := range programSources {
					merge = append(merge, convert(t, c.object(t, s)))
				}
				merged := output(t, "merged.o", merge...)
				w := way{linker: final, mode: "-pie", gc: first.Can(toolchains.RetainWithR)}
				command := append([]string{"gcc"}, w.flags(t)...)
				exe := output(t, "program", append(command, merged, c.object(t, "main.c", "-DSHOW"), c.object(t, "show.c"))...)
				c.checkProgram(t, exe, w.gc)
			})
		}
	}
	all.Run(t)
}

// TestMachines runs programs of other machines.
func TestMachines(t *testing.T) {
	all := product.New("machine")
	for _, m := range toolchains.Foreign() {
		all.Add(m.Name, []string{m.Name}, func(t *testing.T) {
			t.Parallel()
			m.Need(t)
			nop := toolchain{m, toolchains.GCC, []string{"-O2", "-ffunction-sections"}}
			if m == toolchains.PPC64 || m == toolchains.PPC64LE {
				nop.flags = append(nop.flags, "-fno-reorder-blocks") // which would make two of one site
			}
			for _, c := range []toolchain{nop, nop.stubbed()} {
				c.need(t, m.Linker("bfd"))
				exe, _ := c.link(t, way{linker: m.Linker("bfd"), mode: "-static", gc: true}, programSources)
				c.checkProgram(t, exe, true, m.QEMU)
			}
		})
	}
	all.Run(t)
}

// TestManual runs the examples of SDT(9).
func TestManual(t *testing.T) {
	const icmp = "probe icmp::unreach:pkt-receive(struct icmp *)"
	for define, receive := range map[string]string{
		"-UTRANSLATED": "probe ip:::receive(struct ifnet *, struct ip *, struct ip6_hdr *)",
		"-DTRANSLATED": "probe ip:::receive(struct icmp * -> struct icmp_hdr_dt *)",
	} {
		want := []string{
			icmp, receive, "probed icmp::unreach:pkt-receive", "probed ip:::receive", "probed ip:::receive",
			"provider icmp", "provider ip",
		}
		for _, c := range native {
			c.need(t, bfd)
			exe, _ := c.link(t, way{linker: bfd, mode: "-pie"}, []string{"manpage.c"}, define)
			checkLines(t, exe, sortedLines(tools.Must(t, exe)), want)
		}
	}
}
