package header

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// linkers are programs that the compiler's driver finds as ld.
var linkers = []string{"ld.bfd", "ld.gold", "ld.lld-14", "ld.lld-19", "mold"}

// driver is the folder that holds a linker as ld.
func driver(t *testing.T, linker string) string {
	t.Helper()
	path, err := exec.LookPath(linker)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(scratch, "driver-"+linker)
	if err := os.Mkdir(dir, 0o777); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(dir, "ld")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return dir + "/"
}

// toolchain is a C and a C++ compiler with flags.
type toolchain struct {
	prefix, cc, cxx string
	flags           []string
}

func (c toolchain) String() string {
	return strings.Join(append([]string{c.prefix + c.cc}, c.flags...), " ")
}

func (c toolchain) need(t *testing.T, linker string) {
	t.Helper()
	tools.Need(t, c.prefix+c.cc, c.prefix+c.cxx, c.prefix+"gcc", linker)
}

// object compiles a source, and converts it unless that is left to the caller.
func (c toolchain) object(t *testing.T, source string, flags ...string) string {
	t.Helper()
	name := c.cc
	if filepath.Ext(source) == ".cc" {
		name = c.cxx
		flags = append(flags, "-fno-exceptions")
	}
	return compile(t, c.prefix+name, source, append(slices.Clone(c.flags), flags...)...)
}

func convert(t *testing.T, object string, flags ...string) string {
	t.Helper()
	return output(t, filepath.Base(object), append(append([]string{converter}, flags...), object)...)
}

// way is how a program is linked and run.
type way struct {
	linker string
	mode   string // a flag of the driver's
	gc     bool
	layout string
	bare   bool // without a reader in the program
}

func (w way) String() string {
	name := w.linker + w.mode
	if w.gc {
		name += " gc"
	}
	return strings.TrimSpace(name + " " + w.layout)
}

func (w way) flags(t *testing.T) []string {
	flags := []string{"-B" + driver(t, w.linker), w.mode}
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
	command := append([]string{c.prefix + "gcc"}, w.flags(t)...)
	if w.mode != "-shared" {
		exe = output(t, "program", append(command, objects...)...)
		return exe, exe
	}
	image = output(t, "libprogram.so", append(command, objects...)...)
	start := c.object(t, "start.c")
	exe = output(t, "program", c.prefix+"gcc", "-pie", start, image, "-Wl,-rpath,"+filepath.Dir(image))
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
func checkProgram(t *testing.T, exe string, gc bool, emulator ...string) {
	t.Helper()
	command := append(emulator, exe)
	got := sortedLines(tools.Must(t, command[0], command[1:]...))
	want := listing(programProbes(), programProviders...)
	if !gc || slices.Contains(got, deadLines[0]) {
		want = append(want, deadLines...)
	}
	checkLines(t, exe, got, want)
}

var native = []toolchain{
	{cc: "gcc", cxx: "g++", flags: []string{"-O2", "-fPIC", "-ffunction-sections", "-fdata-sections"}},
	{cc: "clang-19", cxx: "clang++-19", flags: []string{"-Os", "-fPIC", "-ffunction-sections", "-fdata-sections"}},
}

// TestLink links with all linkers in all modes.
func TestLink(t *testing.T) {
	for _, c := range native {
		for _, linker := range linkers {
			for _, mode := range []string{"-no-pie", "-pie", "-shared", "-static"} {
				for _, gc := range []bool{false, true} {
					checkWay(t, c, way{linker: linker, mode: mode, gc: gc})
				}
			}
			checkWay(t, c, way{linker: linker, mode: "-shared", gc: true, layout: "relative"})
		}
	}
}

// TestFlags links what other compilers and flags make.
func TestFlags(t *testing.T) {
	for _, c := range []toolchain{
		{cc: "gcc", cxx: "g++", flags: []string{"-O0", "-fPIC"}},
		{cc: "gcc", cxx: "g++", flags: []string{"-O3", "-fPIC", "-fno-plt", "-g"}},
		{cc: "gcc", cxx: "g++", flags: []string{"-O2", "-fno-pic", "-fno-pie"}},
		{cc: "clang-14", cxx: "clang++-14", flags: []string{"-O0", "-fPIC"}},
		{cc: "clang-14", cxx: "clang++-14", flags: []string{"-O2", "-fPIC", "-fno-plt"}},
		{cc: "clang-19", cxx: "clang++-19", flags: []string{"-O2", "-fPIC", "-fno-plt", "-g"}},
	} {
		mode := "-pie"
		if slices.Contains(c.flags, "-fno-pie") {
			mode = "-no-pie"
		}
		for _, linker := range []string{"ld.bfd", "ld.lld-19"} {
			checkWay(t, c, way{linker: linker, mode: mode, gc: true})
		}
	}
}

func checkWay(t *testing.T, c toolchain, w way) {
	t.Run(c.String()+"/"+w.String(), func(t *testing.T) {
		t.Parallel()
		c.need(t, w.linker)
		exe, _ := c.link(t, w, programSources)
		checkProgram(t, exe, w.gc)
	})
}

// TestKept collects garbage in a program that has no reader: nothing refers to
// the linker sets, and tracers look for them from outside.
func TestKept(t *testing.T) {
	for _, c := range native {
		for _, linker := range linkers {
			t.Run(c.String()+"/"+linker, func(t *testing.T) {
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
}

// checkSets counts the entries of sets. A linker may keep the dead probe.
func checkSets(t *testing.T, image string, want map[string]int) {
	t.Helper()
	f, err := elf.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
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

// TestRelocatable links converted objects with -r first. gold forgets what is to
// be retained, so its output must not be linked with --gc-sections; mold 1.10
// merges sections of different groups.
func TestRelocatable(t *testing.T) {
	c := native[0]
	for _, first := range []string{"ld.bfd", "ld.gold", "ld.lld-14", "ld.lld-19"} {
		for _, final := range linkers {
			t.Run(first+"/"+final, func(t *testing.T) {
				t.Parallel()
				c.need(t, first)
				tools.Need(t, final)
				merge := []string{first, "-r"}
				for _, s := range programSources {
					merge = append(merge, convert(t, c.object(t, s)))
				}
				merged := output(t, "merged.o", merge...)
				w := way{linker: final, mode: "-pie", gc: first != "ld.gold"}
				command := append([]string{"gcc"}, w.flags(t)...)
				exe := output(t, "program", append(command, merged, c.object(t, "main.c", "-DSHOW"), c.object(t, "show.c"))...)
				checkProgram(t, exe, w.gc)
			})
		}
	}
}

// TestTwin runs the program unconverted, with stubs that print what they get.
func TestTwin(t *testing.T) {
	source := filepath.Join(scratch, "stubs.c")
	if err := os.WriteFile(source, []byte(stubs(programProbes())), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []toolchain{native[0], native[1], {cc: "gcc", cxx: "g++", flags: []string{"-O0"}}, {cc: "clang-14", cxx: "clang++-14", flags: []string{"-O2"}}} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.need(t, "ld.bfd")
			objects := []string{c.object(t, "main.c"), output(t, "stubs.o", "gcc", "-O2", "-w", "-fPIC", "-c", source)}
			for _, s := range programSources {
				objects = append(objects, c.object(t, s))
			}
			exe := output(t, "twin", append([]string{"gcc"}, objects...)...)
			checkLines(t, exe, sortedLines(tools.Must(t, exe)), calls(programProbes()))
		})
	}
}

// TestMachines runs programs of other machines.
func TestMachines(t *testing.T) {
	for prefix, emulator := range map[string]string{
		"aarch64-linux-gnu-": "qemu-aarch64-static", "riscv64-linux-gnu-": "qemu-riscv64-static",
	} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			c := toolchain{prefix: prefix, cc: "gcc", cxx: "g++", flags: []string{"-O2", "-ffunction-sections"}}
			c.need(t, prefix+"ld.bfd")
			tools.Need(t, emulator)
			exe, _ := c.link(t, way{linker: prefix + "ld.bfd", mode: "-static", gc: true}, programSources)
			checkProgram(t, exe, true, emulator)
		})
	}
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
			c.need(t, "ld.bfd")
			exe, _ := c.link(t, way{linker: "ld.bfd", mode: "-pie"}, []string{"manpage.c"}, define)
			checkLines(t, exe, sortedLines(tools.Must(t, exe)), want)
		}
	}
}
