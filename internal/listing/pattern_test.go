package listing

import (
	"strings"
	"testing"
	"unicode"

	"sdtconvert/internal/locate"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// TestPatternOfVersions makes patterns of libraries, which the next version matches.
func TestPatternOfVersions(t *testing.T) {
	for module, want := range map[string]string{
		"libuv.so.1.0.0": "libuv.so*", "libuv.so.1": "libuv.so*", "libuv.so": "libuv.so", "shop.so.old": "shop.so.old", "libc-2.36.so": "libc-2.36.so",
	} {
		p := Probe{Provider: "uv", Module: module, Function: "uv_run", Name: "begin"}
		expect.Equal(t, "uv:"+want+":uv_run:begin", p.Pattern())
	}
	pattern := expect.Value(ParsePattern("uv:libuv.so*:uv_run:begin"))(t)
	for _, module := range []string{"libuv.so", "libuv.so.1", "libuv.so.2.10.0"} {
		expect.Equal(t, true, pattern.Match("uv", module, "uv_run", "begin"), "%s", module)
	}
}

// The pattern of a name is one word without what begins a comment, and matches the name.
func FuzzPatternOfName(f *testing.F) {
	for _, name := range []string{"", "-", "main.(*T).f", "f[go.shape.int]", "-[Foo bar:]", "#c", `a\b`, "x/y", "[!a]", "[^a]", "caf\u00e9", "\xff\xfe", "\ufffd", "a\tb\n", "\u2028", "*", "?"} {
		f.Add(name, name, name, name)
		f.Add("app", "prog", name, "start")
	}
	f.Fuzz(func(t *testing.T, provider, module, function, name string) {
		p := Probe{Provider: provider, Module: module, Function: function, Name: name}
		text := p.Pattern()
		if strings.ContainsFunc(text, unicode.IsSpace) || strings.Contains(text, "#") {
			t.Fatalf("%q is no word of a list", text)
		}
		pattern, err := ParsePattern(text)
		if err != nil || !pattern.Match(provider, module, function, name) {
			t.Fatalf("%q of %+v does not match, %v", text, p, err)
		}
		if literal := pattern.LiteralName(); literal != "" && literal != name {
			t.Fatalf("%q: %q is not the name", text, literal)
		}
	})
}

// FuzzList lists objects and images, with their lines and inlined functions. What
// is in the file may lead to errors, never to a panic or to a site without a
// place.
func FuzzList(f *testing.F) {
	seeds.Add(f)
	files := objects.NewScratch(f)
	o := &Options{
		Conventions: sites.Conventions{Names: patch.DefaultNames(), ProbePrefix: "sdt_", Layouts: linkerset.Layout{}.All()},
		Places:      locate.Options{Lines: true, Inlines: true, Demangle: true, Warn: func(error) {}}, Semaphores: true,
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		expect.OK(t, files.Write(data))
		File(files.Path(), o, func(out *Listing) { checkListing(t, out) })
	})
}

func checkListing(t *testing.T, out *Listing) {
	t.Helper()
	if len(out.Errors)+len(out.Probes) == 0 {
		t.Fatal("neither a probe nor an error")
	}
	for _, p := range out.Probes {
		if len(p.Sites) == 0 || p.Function == "" {
			t.Fatalf("a probe without sites, or without a function: %+v", p)
		}
		for _, site := range p.Sites {
			if site.Address == "" || site.Kind == "" || site.State == "" {
				t.Fatalf("%s: %+v", p, site)
			}
		}
	}
}
