package linkerset_test

import (
	"testing"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
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
