package links

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestStatics links probe objects that are static in C++: a record names the one that
// its site's function has, by the names that nm has at its address.
func TestStatics(t *testing.T) {
	all := product.New("machine", "compiler", "linker", "layout")
	all.Singly = true // TestSites and TestForeign have the pairs
	for _, m := range append([]*machine{amd64}, foreign...) {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
			for _, ld := range m.linkers {
				for _, l := range []layout{pairs, relative32} {
					if !l.linkedBy(ld) {
						continue
					}
					all.Add(strings.Join([]string{m.Name, cc.Name, ld.Name, l.name}, "/"), []string{m.Name, cc.Name, ld.Name, l.name}, func(t *testing.T) {
						t.Parallel()
						c := crossCompiler(m, cc, "-O2")
						c.need(t)
						tools.Need(t, ld.Path)
						first, second := c.object(t, "statics.cc"), c.object(t, "statics.cc", "-DSECOND")
						objects := convertAll(t, []string{first, second}, "--layout="+l.name, "--stapsdt")
						checkStatics(t, linkAndRun(t, m, ld, "statics", []string{"-pie", "-Wl,--gc-sections"}, objects...), l)
					})
				}
			}
		}
	}
	all.Run(t)
}

// wantStatics is where the probe object of each function of statics.cc is. Of a lambda,
// which compilers name differently, only that is told which function has it.
var wantStatics = []string{
	"_Z14statics_inlinei: _ZZ14statics_inlineiE16sdt_st___inlined",
	"_Z16statics_templateIiEvT_: _ZZ16statics_templateIiEvT_E18sdt_st___templated",
	"_Z16statics_templateIlEvT_: _ZZ16statics_templateIlEvT_E18sdt_st___templated",
	"_ZN8statics14openEi: _ZN8statics113sdt_st___openE",
	"lambda of first: lambda of first",
	"lambda of second: lambda of second",
	"made: made",
	"space: space", // of each file
	"space: space",
	"statics_first: _ZZ13statics_firstE17sdt_st___function",
	"statics_second: _ZZ14statics_secondE17sdt_st___function",
}

// shortStatic shortens the names that compilers choose.
func shortStatic(name string) string {
	for _, short := range []struct{ prefix, to string }{
		{"_ZZ13statics_firstEN", "lambda of first"}, {"_ZZZ13statics_firstEN", "lambda of first"},
		{"_ZZ14statics_secondEN", "lambda of second"}, {"_ZZZ14statics_secondEN", "lambda of second"},
		{"_ZN13statics_classC", "made"}, {"_ZZN13statics_classC", "made"},
		{"_ZN8statics1L", "space"},
	} {
		if strings.HasPrefix(name, short.prefix) {
			return short.to
		}
	}
	return name
}

func checkStatics(t *testing.T, im *image, l layout) {
	t.Helper()
	var got []string
	for start, end := im.bounds(t, l.section["probe"]); start < end; start += l.size(im) {
		probe, at := l.read(t, im, start)
		s := site{kind: "probe", addr: at.value}
		im.locate(t, &s)
		names := []string{probe.symbol}
		if probe.symbol == "" {
			names = im.at(probe.value)
		}
		i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "sdt_st___") })
		if i < 0 {
			t.Errorf("a record of %q at %v", names, s)
			continue
		}
		got = append(got, fmt.Sprintf("%s: %s", shortStatic(s.function), shortStatic(names[i])))
	}
	slices.Sort(got)
	expect.Equal(t, wantStatics, got)
}
