// Package listjson reads what `sdtconvert list --json` prints, as docs/output.md describes it
// and without the types of the program.
package listjson

import (
	"encoding/json"
	"slices"
	"testing"
)

// Probe is a probe of a listing.
type Probe struct {
	Provider, Module, Function, Name string
	Arguments                        []struct{ Native, Translated string }
	Sites                            []Site
}

// Site is a site of a probe, or an address as `sdtconvert resolve --json` prints it.
type Site struct {
	Section, Address         string
	Function, Symbol, Source string
	FunctionOffset           uint64 `json:"function_offset"`
	NoSymbol                 bool   `json:"no_symbol"`
	Unsized, Recorded        bool
	Kind, State              string
	Semaphore                *Semaphore
}

// Semaphore is the semaphore of a site's probe.
type Semaphore struct {
	Address, Symbol string
	Value           *uint16 // nil if it cannot be read
}

// Probes returns the probes of all images of a listing, but for those of GCC's libraries, which are in
// what is linked statically.
func Probes(t testing.TB, text string) []Probe {
	t.Helper()
	var listing struct {
		Version int
		Images  []struct{ Probes []Probe }
	}
	if err := json.Unmarshal([]byte(text), &listing); err != nil || listing.Version != 2 || len(listing.Images) == 0 {
		t.Fatalf("%v: no listing of version 2: %s", err, text)
	}
	var all []Probe
	for _, image := range listing.Images {
		all = append(all, image.Probes...)
	}
	return slices.DeleteFunc(all, func(p Probe) bool { return p.Provider == "libstdcxx" || p.Provider == "libgcc" })
}
