package links

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// listed is a site of a listing, with its probe.
type listed struct {
	Provider, Module, Name string
	listjson.Site          // whose function is the probe's
}

// list runs the lister on an image.
func list(t *testing.T, args ...string) (all []listed) {
	t.Helper()
	for _, p := range listjson.Probes(t, tools.Output(t, converter, append([]string{"list", "--json"}, args...)...)) {
		for _, s := range p.Sites {
			if s.Function == "" {
				t.Errorf("list %q: %s is in no function", args, s.Address)
			}
			s.Function = p.Function
			all = append(all, listed{p.Provider, p.Module, p.Name, s})
		}
	}
	return all
}

// checkListing compares a listing with the records as debug/elf shows them, and
// with the probe objects that ids.h defines.
func checkListing(t *testing.T, im *image, sites []site) {
	t.Helper()
	var want []string
	names := map[string][]string{}
	for _, s := range sites {
		address := fmt.Sprintf("%#x", s.addr)
		names[address], _ = im.around(s.addr)
		want = append(want, fmt.Sprintf("%s %s %s", address, s.kind, strings.ReplaceAll(providerAndName(s.id), "__", "-")))
	}
	var got []string
	for _, l := range list(t, im.path) {
		kind := "probe"
		if strings.HasPrefix(l.Kind, "isenabled") {
			kind = "isenabled"
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", l.Address, kind, l.Provider, l.Name))
		symbol := l.Symbol
		if symbol == "" {
			symbol = l.Function
		}
		switch {
		case !slices.Contains(names[l.Address], symbol):
			t.Errorf("%s: list has %s in %q, not in one of %q", im.path, l.Address, symbol, names[l.Address])
		case symbol != l.Function && !strings.HasPrefix(symbol, l.Function+"."):
			t.Errorf("%s: %q is listed as %q", im.path, symbol, l.Function)
		case l.State != "disabled" || l.Module != filepath.Base(im.path):
			t.Errorf("%s: %+v", im.path, l)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	expect.Equal(t, want, got, "%s: records (-) and listing (+)", im.path)
}

func providerAndName(id string) string {
	if provider, name, ok := strings.Cut(id, "___"); ok {
		return provider + " " + name
	}
	return "sdt " + id
}

// The names of C++ and the chains of inlined functions are addr2line's.
func TestInlinesAreThoseOfAddr2line(t *testing.T) {
	c := compiler{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-g"}}
	c.need(t)
	tools.Need(t, "addr2line")
	p := compileProgram(t, c, pairs, false)
	image := expect.Value(modePIE.link(p, c.machine.Linker("bfd"), nil, p.converted(t)))(t)
	chains := 0
	for _, site := range openImage(t, image.image).records(t, pairs) {
		address := fmt.Sprintf("%#x", site.addr)
		want := tools.Lines(t, "addr2line", "-i", "-f", "-C", "-e", image.image, address)
		got := tools.Lines(t, converter, "resolve", "--inlines", "--demangle", image.image, address)
		if len(want) > 2 {
			chains++
		}
		checkFrames(t, address, got, want)
	}
	if chains < 3 {
		t.Errorf("only %d sites are in inlined functions", chains)
	}
}

// checkFrames compares the lines of resolve with the pairs of lines, function and
// place, of addr2line.
func checkFrames(t *testing.T, address string, got, want []string) {
	t.Helper()
	frames := got[1:]
	if len(frames) == 0 { // nothing is inlined
		columns := strings.Split(got[0], "\t")
		function, _, _ := strings.Cut(columns[4], "+0x")
		frames = []string{"\tinline\t" + function + "\t" + columns[5]}
	}
	var pairs []string
	for i := 0; i+1 < len(want); i += 2 {
		place, _, _ := strings.Cut(want[i+1], " (discriminator")
		pairs = append(pairs, want[i]+"\t"+place)
	}
	for i := range frames {
		frames[i] = strings.TrimPrefix(frames[i], "\tinline\t")
		// Of a clone, addr2line says that it is one, or only its function.
		frames[i] = clone.ReplaceAllString(frames[i], "")
	}
	for i := range pairs {
		pairs[i] = clone.ReplaceAllString(pairs[i], "")
		// What a lambda is called, each tool has an idea of its own.
		if i < len(frames) && strings.Contains(pairs[i], "lambda") {
			_, pairs[i], _ = strings.Cut(pairs[i], "\t")
			_, frames[i], _ = strings.Cut(frames[i], "\t")
		}
	}
	expect.Equal(t, pairs, frames, "%s", address)
}

var clone = regexp.MustCompile(`( \[clone [^]]*\]|\.cold|\.constprop\.\d+|\.part\.\d+|\.isra\.\d+)+`)
