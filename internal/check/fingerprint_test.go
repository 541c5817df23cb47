package check

import "testing"

func TestPathsOfFindings(t *testing.T) {
	for _, c := range []struct{ name, path, base string }{
		{"a.o", "a.o", "a.o"},
		{"d/a.o", "d/a.o", "a.o"},
		{"d/lib.a(a.o)", "d/lib.a", "lib.a(a.o)"},
		{"d/thin.a(../e/a.o)", "d/thin.a", "thin.a(a.o)"},
		{"thin.a(in.a(a.o))", "thin.a", "thin.a(in.a(a.o))"},
		{"d(1)/lib.a(a(2).o)", "d(1)/lib.a", "lib.a(a(2).o)"},
		{"d(1)/a.o", "d(1)/a.o", "a.o"},
		{"a).o", "a).o", "a).o"},
		{"(a.o)", "(a.o)", "(a.o)"},
		{"", "", ""},
	} {
		f := Finding{File: c.name}
		if path, base := f.Path(), Base(c.name); path != c.path || base != c.base {
			t.Errorf("%s: %s, %s; want %s, %s", c.name, path, base, c.path, c.base)
		}
	}
}

func TestFilesOfFingerprints(t *testing.T) {
	for name, want := range map[string]string{
		"a.o": "a.o", "./d/../a.o": "a.o", "/src/d/a.o": "d/a.o", "/other/a.o": "/other/a.o", "../a.o": "../a.o", "": "",
		"/src/d/lib.a(a.o)": "d/lib.a(a.o)", "d/thin.a(../e/a.o)": "d/thin.a(../e/a.o)",
	} {
		if got := FileFrom("/src", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
