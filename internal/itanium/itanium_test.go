package itanium

import (
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// Names as g++ 12, clang++ 14 and clang++ 19 make them.
func TestIdentifiers(t *testing.T) {
	wanted := map[string]bool{"sdt_x": true, "sdt_a___b": true}
	for _, c := range []struct {
		name     string
		at       int
		object   string
		function string
	}{
		{"_ZZ1fiE5sdt_x", 8, "sdt_x", "_Z1fi"},
		{"_ZZ2f2iE5sdt_x_0", 9, "sdt_x", "_Z2f2i"},
		{"_ZZ4mainE5sdt_x", 10, "sdt_x", "main"},
		{"_ZZ1hIlEvT_E9sdt_a___b", 13, "sdt_a___b", "_Z1hIlEvT_"},
		{"_ZZZ4mainENK3$_0clEiE5sdt_x", 22, "sdt_x", "_ZZ4mainENK3$_0clEi"},
		{"_ZZN1AC4EiE5sdt_x", 12, "sdt_x", "_ZN1AC4Ei"},
		{"_ZL5sdt_x", 4, "sdt_x", ""},
		{"_ZN3ns2L5sdt_xE", 9, "sdt_x", ""},
		{"_ZN3ns25sdt_xE", 8, "sdt_x", ""},
		{"_ZN12_GLOBAL__N_15sdt_xE", 18, "sdt_x", ""},
		{"_ZZ1fiE6sdt_xy", 8, "", ""},
		{"_ZZ1fiE4sdt_x", 8, "", ""},
		{"_ZZ1fiE99999999999999999999sdt_x", 27, "", ""},
		{"_ZZ1fiE05sdt_x", 9, "sdt_x", ""}, // no compiler writes the zero: it is not the length's
		{"sdt_x", 0, "", ""},
		{"f5sdt_x", 2, "", ""},
	} {
		if c.name[c.at:min(len(c.name), c.at+4)] != "sdt_" {
			t.Fatalf("%s has nothing at %d", c.name, c.at)
		}
		object, function := "", ""
		for length, name := range Identifiers(c.name, c.at) {
			if wanted[name] {
				object, function = name, FunctionOf(c.name, length)
				break
			}
		}
		expect.Equal(t, c.object, object, "%s", c.name)
		expect.Equal(t, c.function, function, "%s: its function", c.name)
	}
}

func TestConstructorsAreTheSameFunction(t *testing.T) {
	for _, c := range []struct {
		told, symbol string
		want         bool
	}{
		{"f", "f", true}, {"_Z1fi", "_Z1fi", true}, {"_Z1fi", "_Z1fl", false}, {"", "f", false},
		{"_ZN1AC4Ei", "_ZN1AC1Ei", true}, {"_ZN1AC4Ei", "_ZN1AC2Ei", true}, {"_ZN1AD4Ev", "_ZN1AD0Ev", true},
		{"_ZN1AC4Ei", "_ZN1AC1El", false}, {"_ZN1AC4Ei", "_ZN1ACxEi", false}, {"_Z2f4i", "_Z2f1i", false},
	} {
		if got := IsSameFunction(c.told, c.symbol); got != c.want {
			t.Errorf("%q and %q: got %t", c.told, c.symbol, got)
		}
	}
}

func TestStaticNames(t *testing.T) {
	for symbol, want := range map[string]string{"_ZL1fi": "f", "_ZL3foov": "foo", "_ZL9foov": "_ZL9foov", "_Z1fi": "_Z1fi", "_ZL": "_ZL", "f": "f"} {
		expect.Equal(t, want, StaticName(symbol), "%s", symbol)
	}
}
