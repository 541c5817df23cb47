package listing

import (
	"strings"
	"testing"
	"unicode"
)

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
