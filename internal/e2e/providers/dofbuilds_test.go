package providers

import (
	"maps"
	"os"
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

// shop is the program of testdata/dof, compiled for FreeBSD on amd64.
type shop struct {
	directory string
	target    *dofTarget
	objects   []string
	want      []string // the sites
	provider  string   // the object that -G makes
}

func newShop(t *testing.T) *shop {
	t.Helper()
	directory, target := t.TempDir(), dofTargets()["freebsd-amd64"]
	cc, cxx := toolchains.Clang.Name, toolchains.Clang.CXX
	tools.Need(t, cc, cxx, toolchains.AMD64.Linker("lld").Path)
	objects := dofObjects(t, directory, []string{cc, "--target=" + target.triplet}, []string{cxx, "--target=" + target.triplet, "-fno-exceptions"}, target.triplet)
	return &shop{directory, target, objects, dofCalls(t, target, objects), filepath.Join(directory, "provider.o")}
}

// command returns the arguments of -G for some objects.
func (s *shop) command(t *testing.T, objects ...string) []string {
	t.Helper()
	return slices.Concat([]string{"provider", "-G", "-s", source(t, "dof/shop.d"), "-o", s.provider}, objects)
}

// describe runs -G for some objects.
func (s *shop) describe(t *testing.T, objects ...string) {
	t.Helper()
	tools.Must(t, converter, append(s.command(t, objects...), "-q")...)
}

// check links the object of -G with others, and looks at the image.
func (s *shop) check(t *testing.T, others ...string) {
	t.Helper()
	out := filepath.Join(s.directory, "out")
	tools.Must(t, toolchains.AMD64.Linker("lld").Path, append([]string{"-pie", "-e", "work", "-u", "__SUNW_dof", "-o", out, s.provider}, others...)...)
	checkImage(t, out, s.target, s.want)
}

// refuses runs -G for objects that it has to leave alone.
func (s *shop) refuses(t *testing.T, why string, objects ...string) {
	t.Helper()
	before := bytesOf(t, objects...)
	tools.Refuses(t, why, converter, s.command(t, objects...)...)
	if !maps.Equal(before, bytesOf(t, objects...)) {
		t.Error("an object has changed")
	}
	disk.Absent(t, s.provider)
}

// A library that is made before -G is converted as it is, and a linker finds in its index
// what the object of -G needs.
func TestDOFOfArchives(t *testing.T) {
	tools.Need(t, "ar")
	s := newShop(t)
	library := filepath.Join(s.directory, "libshop.a")
	tools.Must(t, "ar", slices.Concat([]string{"rcs", library}, s.objects)...)
	s.describe(t, library)
	before := bytesOf(t, library)
	s.describe(t, library)
	if !maps.Equal(before, bytesOf(t, library)) {
		t.Error("the second -G changes the library")
	}
	s.check(t, library)
}

// An object that was not given to -G still calls stubs, and no linker takes that for done.
func TestDOFOfSomeObjects(t *testing.T) {
	s := newShop(t)
	s.describe(t, s.objects[0])
	for _, l := range s.target.linkers {
		tools.Need(t, l.Path)
		out := filepath.Join(s.directory, "out")
		tools.Refuses(t, "__dtrace_bank____paid", l.Path, slices.Concat([]string{"-e", "work", "-o", out}, s.objects, []string{s.provider})...)
	}
}

// One object that cannot be converted keeps the others as they are.
func TestDOFAllOrNothing(t *testing.T) {
	s := newShop(t)
	address := write(t, s.directory, "address.c", "void __dtrace_shop___empty(void); void *p = (void *)__dtrace_shop___empty;\n")
	tools.Must(t, toolchains.Clang.Name, "--target="+dofTriplet, "-c", "-o", address+".o", address)
	s.refuses(t, `R_X86_64_64 against "__dtrace_shop___empty": the stub's address is stored in data; do not take the stub's address`,
		append(s.objects, address+".o")...)
}

// The header for Linux does not compile for these systems, where its notes would be no
// probes.
func TestHeaderOfLinuxElsewhere(t *testing.T) {
	tools.Need(t, toolchains.Clang.Name)
	header := filepath.Join(directoryWith(t), "shop.h")
	for _, triplet := range []string{dofTriplet, "x86_64-pc-solaris2.11"} {
		tools.Refuses(t, "this header has probes of Linux: make it for the system, with --target",
			toolchains.Clang.Name, "--target="+triplet, "-ffreestanding", "-fsyntax-only", "-include", header, "-x", "c", "/dev/null")
	}
}

// Where one object is compiled again, the sites of the others are still told of.
func TestDOFAfterARebuild(t *testing.T) {
	s := newShop(t)
	fresh := bytesOf(t, s.objects[0])
	s.describe(t, s.objects...)
	before := bytesOf(t, s.objects...)
	disk.Write(t, s.objects[0], fresh["shop.o"][19:])
	s.describe(t, s.objects...)
	after := bytesOf(t, s.objects...)
	if before["first.o"] != after["first.o"] || before["second.o"] != after["second.o"] || before["shop.o"][19:] != after["shop.o"][19:] {
		t.Error("other objects have changed, or the same object has become another")
	}
	s.check(t, append([]string{"-u", "first", "-u", "second"}, s.objects...)...)
}

// drti.o is that of the target's tree, which is named here or to the compiler.
func TestDrtiOfATree(t *testing.T) {
	tools.Need(t, "gcc")
	s := newShop(t)
	drti := filepath.Join(s.directory, "usr", "lib", "dtrace", "drti.o")
	expect.OK(t, os.MkdirAll(filepath.Dir(drti), 0o777))
	tools.Must(t, "gcc", "-O2", "-fPIC", "-c", "-o", drti, tools.Root("examples", "drti", "drti.c"))
	for _, c := range []struct {
		env, flags []string
		registers  bool
	}{
		{nil, nil, false},
		{nil, []string{"--sysroot", s.directory}, true},
		{[]string{"CC=" + toolchains.Clang.Name + " --sysroot=" + s.directory}, nil, true},
		{nil, []string{"--sysroot", s.directory, "-x", "lazyload"}, false},
	} {
		out := tools.Command{Env: c.env}.Must(t, converter, append(s.command(t, s.objects...), c.flags...)...)
		symbols := tools.Output(t, "nm", s.provider)
		expect.Equal(t, c.registers, strings.Contains(symbols, " t withdraw"), "%q, %q: %s", c.env, c.flags, symbols)
		warned := strings.Contains(out, "provider.o: registers no probe when a program starts: there is no /usr/lib/dtrace/drti.o; --sysroot or --drti names one")
		if lazy := slices.Contains(c.flags, "lazyload"); warned != (!c.registers && !lazy) || lazy != strings.Contains(symbols, " ___SUNW_dof\n") {
			t.Errorf("%q, %q: %s, %s", c.env, c.flags, out, symbols)
		}
	}
}

// What -G has made of arm64's code does as before, with every test false.
func TestDOFOfARM64Runs(t *testing.T) {
	m, target := toolchains.ARM64, dofTargets()["freebsd-arm64"]
	m.Need(t)
	directory := t.TempDir()
	objects := dofObjects(t, directory, m.CC(toolchains.GCC), m.CXX(toolchains.GCC), target.triplet)
	s := &shop{provider: filepath.Join(directory, "provider.o")}
	out := tools.Must(t, converter, append(s.command(t, objects...), "--target", target.triplet)...)
	expect.Contains(t, out, objects[0]+": is-enabled tests are never true: no kernel with DTrace arms them on this machine")
	cc, prog := m.CC(toolchains.GCC), filepath.Join(directory, "prog")
	tools.Must(t, cc[0], slices.Concat(cc[1:], []string{"-static", "-o", prog, source(t, "dof/main.c")}, objects, []string{s.provider})...)
	run := m.Command(prog)
	expect.Equal(t, "192 7 9\n", tools.Output(t, run[0], run[1:]...), "the program prints")
	file, _, _ := readDOF(t, s.provider, target.kernel)
	checkImage(t, prog, target, dofSites(file))
}

// dofTriplet is FreeBSD on amd64.
const dofTriplet = "x86_64-unknown-freebsd14.0"

var clang = toolchains.Clang.Name

// dofBuild returns a build for FreeBSD, with a header of one provider. stubs is "-x stubs"
// or none.
func dofBuild(t *testing.T, stubs ...string) build {
	t.Helper()
	tools.Need(t, clang)
	b := newBuild(t)
	b.write(t, "p.d", "provider shop { probe sent(int); probe placed(int); };\n")
	b.Must(t, b.dtrace, append([]string{"-h", "-s", "p.d", "--target", dofTriplet}, stubs...)...)
	return b
}

func (b build) compileDOF(t *testing.T, object, text string) {
	b.compileFor(t, dofTriplet, object, text)
}

func (b build) compileFor(t *testing.T, triplet, object, text string) {
	t.Helper()
	b.write(t, "source.c", "#include \"p.h\"\n"+text)
	b.Must(t, clang, "--target="+triplet, "-O2", "-ffreestanding", "-fPIC", "-c", "source.c", "-o", object)
}

// missingDOF returns the findings of check about sites without DOF, by file and function.
func (b build) missingDOF(t *testing.T, files ...string) (lost []string) {
	t.Helper()
	out, _ := b.Try(converter, append([]string{"check"}, files...)...)
	if !strings.Contains(out, " sites of ") && !strings.Contains(out, " site of ") {
		t.Fatal(out)
	}
	for line := range strings.Lines(out) {
		if m := regexp.MustCompile(`^([^:]+): .* error: in (\w+)\+.*\[missing-dof\]$`).FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			lost = append(lost, m[1]+" "+m[2])
		} else if strings.Contains(line, "error: ") {
			t.Errorf("%q: %s", files, line)
		}
	}
	return lost
}

// -G for one object and then for another, with one output: the sites of the first are lost.
// check finds them in the objects, what -r makes of them, and what is linked, and inspect
// shows them. One run for both is right.
func TestDOFOfOtherObjects(t *testing.T) {
	for _, stubs := range [][]string{nil, {"-x", "stubs"}} {
		b := dofBuild(t, stubs...)
		for _, name := range []string{"a1", "a2"} {
			b.compileDOF(t, name+".o", "void "+name+"(int n) { if (SHOP_SENT_ENABLED()) SHOP_SENT(n); n++; SHOP_PLACED(n); }\n")
			b.Must(t, b.dtrace, "-w", "-G", "-s", "p.d", "-o", "p.o", name+".o")
		}
		want := []string{"a1.o a1", "a1.o a1", "a1.o a1"}
		expect.Equal(t, want, b.missingDOF(t, "a1.o", "a2.o", "p.o"), "%q", stubs)
		for _, file := range []string{"a1.o", "a2.o"} {
			out := b.Must(t, converter, "inspect", file)
			if strings.Count(out, "disabled") != 3 || strings.Count(out, "dtrace  -G: $dtrace") != 3 {
				t.Errorf("inspect: %s", out)
			}
			if out = b.Must(t, converter, "-n", "--json", file); strings.Count(out, `"alias": "$dtrace`) != 3 || !strings.Contains(out, `"status": "unchanged"`) {
				t.Errorf("manifest: %s", out)
			}
		}
		links := func(want []string) {
			for _, linker := range toolchains.AMD64.Linkers() {
				b.Must(t, linker.Path, "-shared", "-z", "notext", "--unresolved-symbols=ignore-all", "-o", "l.so", "a1.o", "a2.o", "p.o")
				expect.Equal(t, want, b.missingDOF(t, "l.so"), "%s", linker.Name)
				for _, strip := range []string{"-g", "-s"} { // DOF names functions where no symbol does
					b.write(t, "names.txt", b.Must(t, converter, "list", "--names", "l.so"))
					if out, _ := b.Try(converter, "check", "--require", "@names.txt", "l.so"); strings.Contains(out, "missing-probe") {
						t.Errorf("%s: %s", linker.Name, out)
					}
					b.Must(t, "strip", strip, "l.so")
				}
			}
		}
		links([]string{"l.so a1"})
		b.Must(t, "ld", "-r", "-o", "r.o", "a1.o", "a2.o", "p.o")
		expect.Equal(t, []string{"r.o a1", "r.o a1", "r.o a1"}, b.missingDOF(t, "r.o"))
		b.Must(t, b.dtrace, "-w", "-G", "-s", "p.d", "-o", "p.o", "a1.o", "a2.o")
		if lost := b.missingDOF(t, "a1.o", "a2.o", "p.o"); lost != nil {
			t.Errorf("%q", lost)
		}
		links(nil)
	}
}

// Of arm64 no kernel arms tests, so none is lost.
func TestDOFOfARM64Tests(t *testing.T) {
	b := dofBuild(t)
	b.compileFor(t, "aarch64-unknown-freebsd14.0", "a.o", "int tests(void) { return SHOP_SENT_ENABLED(); }\nvoid fires(void) { SHOP_SENT(1); }\n")
	b.Must(t, b.dtrace, "-w", "-G", "-s", "p.d", "-o", "p.o", "a.o")
	if lost := b.missingDOF(t, "a.o", "p.o"); lost != nil {
		t.Errorf("%q", lost)
	}
	expect.Equal(t, []string{"a.o fires"}, b.missingDOF(t, "a.o"))
}
