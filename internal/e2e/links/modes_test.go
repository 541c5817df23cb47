package links

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// mode is a way to link a program into one image with all its probes.
type mode struct {
	name    string
	flags   []string
	library bool // the image is a library that an executable uses
}

var (
	modeExe       = mode{name: "exe", flags: []string{"-no-pie"}}
	modePIE       = mode{name: "pie", flags: []string{"-pie"}}
	modeStatic    = mode{name: "static", flags: []string{"-static"}}
	modeStaticPIE = mode{name: "static-pie", flags: []string{"-static-pie"}}
	modeShared    = mode{name: "shared", flags: []string{"-shared", "-Wl,-z,defs"}, library: true}
	modes         = []mode{modeExe, modePIE, modeStatic, modeShared}
)

// linked is the image with the probes, and the executable that runs it.
type linked struct {
	image, exe string
}

// cannot says why a linker links nothing for a machine in a mode, "" where it does.
func (md mode) cannot(m *machine, ld toolchains.Linker) string {
	switch md.name {
	case modeStatic.name:
		return m.Cannot(ld, toolchains.Static)
	case modeStaticPIE.name:
		return m.Cannot(ld, toolchains.StaticPIE)
	}
	return ""
}

// link links a program's objects in a mode, with more flags.
func (md mode) link(p program, ld toolchains.Linker, flags []string, objects []string) (linked, error) {
	flags = append(append([]string{}, md.flags...), flags...)
	if !md.library {
		path, err := link(p.machine, ld, "program", flags, objects...)
		return linked{path, path}, err
	}
	lib, err := link(p.machine, ld, "libprobed.so", flags, objects...)
	if err != nil {
		return linked{}, err
	}
	path := "-Wl,-rpath," + filepath.Dir(lib)
	exe, err := link(p.machine, ld, "program", []string{"-pie", path}, p.starter, lib)
	return linked{lib, exe}, err
}

// check compares the image and a run of it with the sites of the twin.
func (l linked) check(t *testing.T, m *machine, records layout, want []site) {
	t.Helper()
	sites := checkImage(t, m, records, l.image, want)
	checkRun(t, m, l.exe, expected(t), openImage(t, l.image), sites)
}

// unconverted skips a test whose twin is not linked, or does not run.
func unconverted(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Skipf("unconverted: %v", err)
	}
}

// twins remembers what is known of unconverted images.
var twins sync.Map // path -> *twin

type twin struct {
	once  sync.Once
	err   error
	sites []site
}

// examine runs a twin and finds its sites; the test is skipped where the twin
// does not run, or prints something else.
func (l linked) examine(t *testing.T, m *machine) []site {
	t.Helper()
	v, _ := twins.LoadOrStore(l.image, &twin{})
	tw := v.(*twin)
	tw.once.Do(func() {
		var o outcome
		if o, tw.err = run(m, l.exe); tw.err != nil {
			return
		}
		expect.Equal(t, expected(t), o.stdout, "the unconverted %s prints", l.exe)
		tw.sites = twinSites(t, m, openImage(t, l.image))
	})
	if tw.err != nil {
		t.Skipf("unconverted: %v", tw.err)
	}
	return tw.sites
}

// combination is one way through compiler, converter and linker.
type combination struct {
	compiler compiler
	layout   layout
	linker   toolchains.Linker
	mode     mode
}

func (c combination) String() string {
	return c.compiler.String() + "/" + c.layout.name + "/" + c.linker.Name + "/" + c.mode.name
}

// combinationDimensions are the dimensions of a combination's values.
var combinationDimensions = dimensions("layout", "linker", "mode")

// values returns one of each of combinationDimensions.
func (c combination) values() []string {
	return append(c.compiler.values(), c.layout.name, c.linker.Name, c.mode.name)
}

// check links the combination's program twice, unconverted and converted, and
// compares the two.
func (c combination) check(t *testing.T) {
	m := c.compiler.machine
	tools.Need(t, c.linker.Path)
	p := compileProgram(t, c.compiler, c.layout, c.mode.library)
	twin, err := c.mode.link(p, c.linker, nil, p.twin())
	unconverted(t, err)
	want := twin.examine(t, m)
	got := expect.Value(c.mode.link(p, c.linker, nil, p.converted(t, c.layout.flags()...)))(t)
	got.check(t, c.comparable(), c.layout, want)
}

// comparable returns the machine, exact if sites are where the twin's calls are. Of
// -fno-plt's calls mold 1.10 makes `nop; call`, so the twin's stand one byte further.
func (c combination) comparable() *machine {
	if c.linker.Name != "mold" || !strings.Contains(c.compiler.String(), "-fno-plt") {
		return c.compiler.machine
	}
	inexact := *c.compiler.machine
	inexact.exact = false
	return &inexact
}

// runCombinations checks the combinations that the run has.
func runCombinations(t *testing.T, all []combination) {
	tests := product.New(combinationDimensions...)
	for _, c := range all {
		tests.Add(c.String(), c.values(), func(t *testing.T) {
			c.compiler.parallel(t)
			c.check(t)
		})
	}
	tests.Run(t)
}

// every makes all combinations of lists, or those that a machine's tests are brief with.
func every(compilers []compiler, layouts []layout, modes []mode) []combination {
	var all []combination
	for _, c := range here(compilers...) {
		for i, l := range layouts {
			for j, ld := range c.machine.linkers {
				for k, md := range modes {
					if md.cannot(c.machine, ld) == "" && l.linkedBy(ld) && (!c.machine.brief || (j+k)%len(layouts) == i) {
						all = append(all, combination{c, l, ld, md})
					}
				}
			}
		}
	}
	return all
}

func amd64Compiler(cc toolchains.Compiler, flags ...string) compiler {
	return compiler{machine: amd64, cc: cc, flags: append(flags, "-fPIC")}
}

// TestLayouts links every layout in every mode.
func TestLayouts(t *testing.T) {
	runCombinations(t, every([]compiler{
		amd64Compiler(toolchains.GCC, "-O2"),
		amd64Compiler(toolchains.Clang, "-Os"),
	}, layouts, modes))
}

// TestCompilers links what more compilers and flags make, in the modes that
// differ most.
func TestCompilers(t *testing.T) {
	runCombinations(t, every([]compiler{
		amd64Compiler(toolchains.GCC, "-Os", "-ffunction-sections"),
		amd64Compiler(toolchains.GCC, "-O2", "-fno-plt", "-DNO_REPEAT"),
		amd64Compiler(toolchains.GCC, "-O2", "-fcf-protection=full"),
		amd64Compiler(toolchains.OldClang, "-Os"),
		amd64Compiler(toolchains.Clang, "-O2", "-ffunction-sections"),
		// In the other files clang would keep stubs' addresses in registers.
		{machine: amd64, cc: toolchains.Clang, flags: []string{"-O2", "-fPIC"}, calls: []string{"-fno-plt", "-DNO_REPEAT"}},
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}

// TestStaticPIE links relative records where nothing but the program itself
// could relocate them, and absolute ones that it does relocate.
func TestStaticPIE(t *testing.T) {
	runCombinations(t, every([]compiler{amd64Compiler(toolchains.GCC, "-O2")},
		layouts, []mode{modeStaticPIE}))
}

// TestNotPositionIndependent links code that was compiled for a fixed address.
func TestNotPositionIndependent(t *testing.T) {
	runCombinations(t, every([]compiler{
		{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-fno-pic", "-fno-pie"}},
		{machine: amd64, cc: toolchains.Clang, flags: []string{"-O2", "-fno-pic", "-fno-pie"}},
	}, []layout{pairs}, []mode{modeExe}))
}

var kinds = []string{"probe", "isenabled"}

// layout is how records stand in an image.
type layout struct {
	name    string
	show    string // LAYOUT of show.c
	section map[string]string
	words   uint64 // of a record, 0 for one of two distances
	read    func(t *testing.T, im *image, addr uint64) (probe, site word)
}

var (
	pairs = layout{
		name:    "pairs",
		show:    "1",
		section: map[string]string{"probe": "sdt_instances_set", "isenabled": "sdt_isenabled_set"},
		words:   2,
		read:    readPair,
	}
	relative32 = layout{
		name:    "relative",
		show:    "2",
		section: map[string]string{"probe": "sdt_instances_rel", "isenabled": "sdt_isenabled_rel"},
		read:    readRelative,
	}
	freebsd = layout{
		name:    "freebsd",
		show:    "3",
		section: map[string]string{"probe": "set_sdt_instances_set", "isenabled": "set_sdt_isenabled_set"},
		words:   1,
		read:    readPointer,
	}
	layouts = []layout{pairs, relative32, freebsd}
)

// linkedBy reports whether a linker links the records.
func (l layout) linkedBy(ld toolchains.Linker) bool {
	return l.words != 0 || ld.Can(toolchains.Distances)
}

// size returns that of a record in bytes.
func (l layout) size(im *image) uint64 {
	if l.words == 0 {
		return 8
	}
	return l.words * uint64(im.wordSize())
}

// flags returns the converter's flags for a layout; the default is left unsaid.
func (l layout) flags() []string {
	if l.name == "pairs" {
		return nil
	}
	return []string{"--layout", l.name}
}

func readPair(t *testing.T, im *image, addr uint64) (probe, site word) {
	t.Helper()
	return im.word(t, addr), im.word(t, addr+uint64(im.wordSize()))
}

// readRelative also sees to it that nothing is left to the dynamic loader.
func readRelative(t *testing.T, im *image, addr uint64) (probe, site word) {
	t.Helper()
	for a := addr; a < addr+8; a++ {
		if w, ok := im.dynamic[a]; ok {
			t.Errorf("%s: a dynamic relocation %v at %#x, in a relative record", im.path, w, a)
		}
	}
	distance := func(at uint64) word {
		to := at + uint64(int64(int32(im.number(im.bytes(t, at, 4)))))
		if im.wordSize() == 4 {
			to = uint64(uint32(to))
		}
		return word{value: to}
	}
	return distance(addr), distance(addr + 4)
}

func readPointer(t *testing.T, im *image, addr uint64) (probe, site word) {
	t.Helper()
	p := im.word(t, addr)
	expect.Equal(t, "", p.symbol, "%s: the pointer at %#x is to a symbol", im.path, addr)
	return readPair(t, im, p.value)
}
