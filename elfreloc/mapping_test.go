package elfreloc

import "testing"

func TestMappingLetters(t *testing.T) {
	for name, want := range map[string]byte{
		"$x": 'x', "$d": 'd', "$t": 't', "$a": 'a', "$x.0": 'x', "$d.realdata": 'd', "$xrv64i2p1_m2p0": 'x', "$xrv32i2p0.7": 'x',
		"$": 0, "$xy": 0, "$drv64i": 0, "$data": 0, "x": 0, "": 0,
	} {
		if got := mappingLetter(name + "\x00$next\x00"); got != want && name != "" {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := mappingLetter("$x"); got != 0 {
		t.Errorf("a name that the table cuts off: got %q", got)
	}
}
