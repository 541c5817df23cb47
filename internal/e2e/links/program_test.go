package links

import (
	"fmt"
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

// program is the test program's objects.
type program struct {
	machine *machine
	probed  []string // converted, but in the twin
	probes  string   // the probe objects
	show    string   // that shows the records of one layout
	idle    string   // the same for the twin, which has none
	stubs   string   // what only the twin has
	starter string   // main, where the probed main is in a library
}

// compileProgram compiles the test program for an image that holds main, or for
// a library that does not.
func compileProgram(t *testing.T, c compiler, l layout, library bool) program {
	t.Helper()
	var rename []string
	if library {
		rename = []string{"-Dmain=program_main"}
	}
	base := compiler{machine: c.machine, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
	return program{
		machine: c.machine,
		probed: []string{
			c.object(t, "program.c", rename...), c.with(c.calls...).object(t, "calls.c"),
			c.object(t, "comdat.cc"), c.object(t, "program2.cc"),
		},
		probes: base.object(t, "probes.c"),
		show:   base.object(t, "show.c", "-DLAYOUT="+l.show),
		idle:   base.object(t, "show.c", "-DLAYOUT="+pairs.show),
		// Hidden, so that every linker calls them directly.
		stubs:   base.with(c.ofSameSet()...).object(t, "stubs.c", "-fvisibility=hidden"),
		starter: base.object(t, "main.c"),
	}
}

// twin and converted are the objects of the two programs.
func (p program) twin() []string {
	return append(slices.Clone(p.probed), p.probes, p.idle, p.stubs)
}

func (p program) converted(t *testing.T, flags ...string) []string {
	t.Helper()
	return append(convertAll(t, p.probed, flags...), p.probes, p.show)
}

// link links an image with a linker, through g++. The result is shared by the
// tests that link the same objects with the same flags.
func link(m *machine, ld toolchains.Linker, base string, flags []string, objects ...string) (string, error) {
	dir, err := files.Driver(ld.Path)
	if err != nil {
		return "", err
	}
	driver := m.driver()
	return files.Run(base, driver[0], slices.Concat(driver[1:], []string{"-B" + dir}, flags, m.LinkFlags, objects)...)
}

// merge links objects to one object, with -r.
func merge(ld toolchains.Linker, flags []string, objects ...string) (string, error) {
	return files.Run("merged.o", ld.Path, slices.Concat([]string{"-r"}, flags, objects)...)
}

// outcome is what a program printed, and the records that show.c showed.
type outcome struct {
	stdout  string
	records []string
}

// run runs a program, with preloaded libraries where there are any.
func run(m *machine, path string, preload ...string) (outcome, error) {
	args := m.Command(path)
	env := []string{"LINKTEST_SHOW=1"}
	if preload != nil {
		env = append(env, "LD_PRELOAD="+strings.Join(preload, ":"))
	}
	stdout, stderr, err := tools.Command{Env: env}.Apart(args[0], args[1:]...)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{stdout: stdout}
	for _, match := range shown.FindAllStringSubmatch(stderr, -1) {
		id := strings.ReplaceAll(match[3], "-", "__")
		if match[2] != "sdt" {
			id = match[2] + "___" + id
		}
		o.records = append(o.records, match[1]+" "+id+" "+match[4])
	}
	slices.Sort(o.records)
	return o, nil
}

var shown = regexp.MustCompile(`(?m)^record (\w+) (\S+) (\S+) (0x[0-9a-f]+)$`)

// expected returns what the test program prints.
func expected(t *testing.T) string {
	t.Helper()
	return string(disk.Read(t, filepath.Join(sources, "program.expect")))
}

// linkAndRun links a program that has to run, and opens it.
func linkAndRun(t *testing.T, m *machine, ld toolchains.Linker, base string, flags []string, objects ...string) *image {
	t.Helper()
	exe := expect.Value(link(m, ld, base, flags, objects...))(t)
	expect.Value(run(m, exe))(t)
	return openImage(t, exe)
}

// checkRun runs a converted program and compares the records that it sees with
// those of the images on disk.
func checkRun(t *testing.T, m *machine, path, want string, im *image, sites []site) {
	t.Helper()
	o := expect.Value(run(m, path))(t)
	expect.Equal(t, want, o.stdout, "%s prints", path)
	var records []string
	for _, s := range sites {
		records = append(records, fmt.Sprintf("%s %s %#x", s.kind, s.id, s.addr-im.header(t)))
	}
	slices.Sort(records)
	if !slices.Equal(o.records, records) {
		t.Errorf("%s sees the records\n%s\nnot\n%s", path, strings.Join(o.records, "\n"), strings.Join(records, "\n"))
	}
}
