package linkerset_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
)

// named is an image in which these symbols stand everywhere.
type named struct {
	image.Image
	names []string
}

func (n named) SymbolsAt(image.Addr) ([]string, error) { return n.names, nil }

func TestSymbolOfProbeObject(t *testing.T) {
	for _, c := range []struct {
		want  string
		names []string
	}{
		{"", nil},
		{"object", []string{"object", "other"}},
		{"sdt_app___hit", []string{"object", "sdt_app___hit"}},
		{"f.sdt_app___hit.1", []string{"f", "f.sdt_app___hit.1"}},
		// The first object behind the records of tests, or of nothing.
		{"sdt_app___hit", []string{"__stop_sdt_isenabled_set", "sdt_app___hit"}},
		{"f.sdt_app___hit", []string{"__start_sdt_isenabled_set", "__stop_sdt_isenabled_set", "f.sdt_app___hit"}},
	} {
		got := expect.Value(linkerset.NewProbes(named{names: c.names}, "sdt_").Symbol(image.Ref{}))(t)
		expect.Equal(t, c.want, got, "%q", c.names)
	}
}

// TestIDsOfMangledNames compares the ids of probe objects with c++filt, in namespaces and
// functions whose names end as lengths do.
func TestIDsOfMangledNames(t *testing.T) {
	tools.Need(t, "c++filt")
	r := rand.New(rand.NewPCG(1, 5))
	name := func(letters string) string {
		b := []byte{letters[r.IntN(len(letters))]}
		for range r.IntN(14) {
			b = append(b, (letters + "0123456789")[r.IntN(len(letters)+10)])
		}
		return fmt.Sprintf("%d%s", len(b), b)
	}
	var symbols []string
	for range 500 {
		object := "sdt_" + strings.TrimLeft(name("pq_"), "0123456789") + "___" + strings.TrimLeft(name("xy_"), "0123456789")
		object = fmt.Sprintf("%d%s", len(object), object)
		scopes := ""
		for range 1 + r.IntN(3) {
			scopes += name("ab")
		}
		symbols = append(symbols, []string{
			"_ZN" + scopes + object + "E", "_ZN" + scopes + "L" + object + "E", "_ZL" + object,
			"_ZZN" + scopes + "EvE" + object, "_ZZN" + scopes + "EvE" + object + "_1", "_ZZ" + name("ab") + "vE" + object,
		}[r.IntN(6)])
	}
	for i, want := range tools.Lines(t, "c++filt", symbols...) {
		want = want[strings.LastIndex(want, "::")+1:]
		want, _ = strings.CutPrefix(strings.TrimPrefix(want, ":"), "sdt_")
		got := expect.Value(linkerset.NewProbes(named{names: symbols[i : i+1]}, "sdt_").IDs(image.Ref{}))(t)
		expect.Equal(t, []string{want}, got, "%s", symbols[i])
	}
}

func TestSplitID(t *testing.T) {
	for id, want := range map[string][2]string{
		"a___b": {"a", "b"}, "a__b___c__d": {"a__b", "c__d"}, "a___b___c": {"a", "b___c"}, "a____b": {"a", "_b"},
		"a": {"sdt", "a"}, "a__b": {"sdt", "a__b"}, "___b": {"sdt", "___b"}, "a___": {"sdt", "a___"}, "": {"sdt", ""},
	} {
		provider, name := linkerset.SplitID(id)
		expect.Equal(t, want, [2]string{provider, name}, "%q", id)
	}
}
