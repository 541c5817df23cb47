package links

import (
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestLocals links probe objects that are local to functions: a record names
// the one of its site's function, by the names that nm has at its address.
func TestLocals(t *testing.T) {
	all := product.New("machine", "compiler", "linker")
	all.Singly = true // TestSites and TestForeign have the pairs
	for _, m := range append([]*machine{amd64}, foreign...) {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
			for _, ld := range m.linkers {
				all.Add(m.Name+"/"+cc.Name+"/"+ld.Name, []string{m.Name, cc.Name, ld.Name}, func(t *testing.T) {
					t.Parallel()
					c := crossCompiler(m, cc, "-O2")
					c.need(t)
					tools.Need(t, ld.Path)
					plain := compiler{machine: m, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
					o := convert(t, c.object(t, "locals.c"))
					im := linkAndRun(t, m, ld, "locals", []string{"-pie"}, o, plain.object(t, "localsmain.c"))
					checkLocals(t, im, cc == toolchains.GCC)
				})
			}
		}
	}
	all.Run(t)
}

// wantLocals is what the records of locals.c are of, and where gcc and clang
// have the probe object: gcc's names tell only the id, clang's the function too.
var wantLocals = map[string][]string{
	"locals_first":  {"locals_first.sdt_sdt___one", "locals_first.sdt_sdt___shared"},
	"locals_second": {"locals_second.sdt_sdt___shared"},
	"locals_third":  {"locals_third.sdt_sdt___two", "locals_third.sdt_sdt___two", "within.sdt_sdt___inlined"},
	// The test has no object of its own function: it is the file's first.
	"locals_fourth": {"locals_first.sdt_sdt___shared", "within.sdt_sdt___inlined"},
}

func checkLocals(t *testing.T, im *image, gcc bool) {
	t.Helper()
	got := map[string][]string{}
	objects := map[uint64]bool{} // that probe calls have
	for _, kind := range kinds {
		start, end := im.bounds(t, pairs.section[kind])
		for ; start < end; start += pairs.size(im) {
			probe, at := readPair(t, im, start)
			s := site{kind: kind, addr: at.value}
			im.locate(t, &s)
			got[s.function] = append(got[s.function], localName(im, probe.value))
			if kind == "probe" {
				objects[probe.value] = true
			}
		}
	}
	for function, names := range wantLocals {
		want := slices.Clone(names)
		if gcc {
			for i, n := range want {
				want[i] = n[strings.Index(n, ".sdt_")+1:]
			}
		}
		slices.Sort(want)
		slices.Sort(got[function])
		if !slices.Equal(got[function], want) {
			t.Errorf("%s has records of %q, not %q", function, got[function], want)
		}
	}
	shared := 0
	for addr := range objects {
		if strings.HasSuffix(localName(im, addr), "sdt_sdt___shared") {
			shared++
		}
	}
	// gcc's names leave open whose object it is, so all take the file's first.
	expect.Equal(t, map[bool]int{true: 1, false: 2}[gcc], shared, "objects for the calls of sdt___shared in two functions")
}

// localName returns the name of the local object at an address, without the number
// that compilers add.
func localName(im *image, addr uint64) string {
	for _, name := range im.at(addr) {
		if i := strings.LastIndex(name, "."); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
			name = name[:i]
		}
		if strings.Contains(name, "sdt_sdt___") {
			return name
		}
	}
	return ""
}
