package states

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// listed is a site in the JSON of list.
type listed struct {
	Address  string
	Symbol   string
	Function string
	NoSymbol bool `json:"no_symbol"`
	State    string
	Operands string
}

// Each note of the system's own programs and libraries is a probe, with the function that other tools
// find at its address.
func TestProbesOfTheSystem(t *testing.T) {
	tools.Need(t, "readelf", "eu-addr2line")
	var document struct {
		Images []struct {
			Image  string
			Probes []struct {
				Provider, Name string
				Sites          []listed
			}
			Errors []string
		}
	}
	f := newDirectory(t)
	expect.OK(t, json.Unmarshal([]byte(f.run("list", "--system", "--json").Stdout), &document))
	total := 0
	for _, image := range document.Images {
		sites, got := map[string]listed{}, map[string]bool{}
		for _, p := range image.Probes {
			for _, s := range p.Sites {
				sites[s.Address] = s
				got[fmt.Sprintf("%s %s %s %s", s.Address, p.Provider, p.Name, s.Operands)] = true
				if s.State != "disabled" {
					t.Errorf("%s: %+v", image.Image, s)
				}
			}
		}
		expect.Equal(t, notesOf(t, image.Image), slices.Sorted(maps.Keys(got)), "%s", image.Image)
		checkFunctions(t, image.Image, sites)
		total += len(got)
		if len(image.Errors) > 0 {
			t.Errorf("%s: %v", image.Image, image.Errors)
		}
	}
	if total == 0 {
		t.Error("no library has a probe, libstdc++.so.6 neither")
	}
	t.Logf("%d probes in %d files", total, len(document.Images))
}

// notesOf returns the probes that readelf finds in the notes of a file, sorted.
func notesOf(t *testing.T, path string) []string {
	t.Helper()
	found := map[string]bool{}
	note := regexp.MustCompile(`Provider: (.*)\n\s+Name: (.*)\n\s+Location: 0x0*([0-9a-f]+), .*\n\s+Arguments: ?(.*)\n`)
	for _, m := range note.FindAllStringSubmatch(tools.Output(t, "readelf", "-nW", path), -1) {
		found[fmt.Sprintf("0x%s %s %s %s", m[3], strings.ReplaceAll(m[1], "__", "-"), strings.ReplaceAll(m[2], "__", "-"), m[4])] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// checkFunctions compares the functions of sites with those that elfutils finds.
func checkFunctions(t *testing.T, path string, sites map[string]listed) {
	t.Helper()
	addresses := slices.Sorted(maps.Keys(sites))
	lines := strings.Split(tools.Output(t, "eu-addr2line", append([]string{"-f", "-e", path}, addresses...)...), "\n")
	for i, address := range addresses {
		s, want := sites[address], lines[2*i]
		symbol := s.Symbol
		if symbol == "" {
			symbol = s.Function
		}
		if symbol != want && !(want == "??" && (s.NoSymbol || symbol == "")) {
			t.Errorf("%s: %s: got the function %s, and eu-addr2line %s", path, address, symbol, want)
		}
	}
}
