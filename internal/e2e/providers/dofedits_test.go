package providers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

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

// lostSites returns the findings of check about lost sites, by file and function.
func (b build) lostSites(t *testing.T, files ...string) (lost []string) {
	t.Helper()
	out, _ := b.Try(converter, append([]string{"check"}, files...)...)
	if !strings.Contains(out, " sites of ") && !strings.Contains(out, " site of ") {
		t.Fatal(out)
	}
	for line := range strings.Lines(out) {
		if m := regexp.MustCompile(`^([^:]+): .* error: in (\w+)\+.*\[lost-site\]$`).FindStringSubmatch(strings.TrimSpace(line)); m != nil {
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
		expect.Equal(t, want, b.lostSites(t, "a1.o", "a2.o", "p.o"), "%q", stubs)
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
				expect.Equal(t, want, b.lostSites(t, "l.so"), "%s", linker.Name)
			}
		}
		links([]string{"l.so a1"})
		b.Must(t, "ld", "-r", "-o", "r.o", "a1.o", "a2.o", "p.o")
		expect.Equal(t, []string{"r.o a1", "r.o a1", "r.o a1"}, b.lostSites(t, "r.o"))
		b.Must(t, b.dtrace, "-w", "-G", "-s", "p.d", "-o", "p.o", "a1.o", "a2.o")
		if lost := b.lostSites(t, "a1.o", "a2.o", "p.o"); lost != nil {
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
	if lost := b.lostSites(t, "a.o", "p.o"); lost != nil {
		t.Errorf("%q", lost)
	}
	expect.Equal(t, []string{"a.o fires"}, b.lostSites(t, "a.o"))
}

// Two objects of one name and content in two directories are two: in one run of -G and in
// several. The objects are the same wherever the tree is.
func TestDOFOfTwoDirectories(t *testing.T) {
	var first string
	for range 2 {
		b := dofBuild(t)
		for _, directory := range []string{"x", "y"} {
			expect.OK(t, os.Mkdir(filepath.Join(b.Directory, directory), 0o777))
			b.compileDOF(t, directory+"/a.o", "__attribute__((constructor)) static void f(void) { SHOP_PLACED(1); }\n")
		}
		b.Must(t, b.dtrace, "-w", "-G", "-s", "p.d", "-o", "p.o", "x/a.o", filepath.Join(b.Directory, "y/a.o"))
		for _, linker := range toolchains.AMD64.Linkers() {
			b.Must(t, linker.Path, "-shared", "-z", "notext", "-o", "l.so", "x/a.o", "y/a.o", "p.o")
			if out := b.Must(t, converter, "list", "-v", "l.so"); strings.Count(out, "disabled") != 2 {
				t.Errorf("%s: %s", linker.Name, out)
			}
		}
		sums := b.Output(t, "sha256sum", "x/a.o", "y/a.o", "p.o")
		if first == "" {
			first = sums
		} else if sums != first {
			t.Errorf("in another directory they are others: %s%s", first, sums)
		}
	}
}
