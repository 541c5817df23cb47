package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Manifest says which sites objects had when they were converted. It is read from
// the JSON of docs/manifest.md.
type Manifest struct {
	copies []*functionCopy
	byFile map[string][]*functionCopy
	names  map[string]bool // symbols of functions
}

// functionCopy is a function of one object, with its sites. A linker keeps one of
// the copies of a function that several objects have.
type functionCopy struct {
	object     string
	symbol     string // "" for sites that no function holds
	sourceFile string // of a local function; "" for others
	size       uint64 // bytes, 0 when not known
	sites      []manifestSite

	reached bool     // some image has all its sites
	lost    []*lost  // by image
	kept    []string // images that have another copy of the function
}

// manifestSite is a site of a converted object.
type manifestSite struct {
	Section        string `json:"section"`
	Offset         uint64 `json:"offset"`
	Function       string `json:"function"`
	FunctionOffset uint64 `json:"function_offset"`
	FunctionSize   uint64 `json:"function_size"`
	SourceFile     string `json:"source_file"`
	Symbol         string `json:"symbol"`
	Kind           string `json:"kind"`
	State          string `json:"state"`
	Probe          string `json:"probe"`
	Source         string `json:"source"`
	Record         *struct {
		Offset uint64 `json:"offset"`
	} `json:"record"`
}

// recorded is the distance of the recorded instruction from the function's start.
func (s *manifestSite) recorded() uint64 { return s.FunctionOffset + (s.Record.Offset - s.Offset) }

func (s *manifestSite) enabled() bool { return strings.HasPrefix(s.Kind, "isenabled") }

// manifestVersion is the version of the format that is known here.
const manifestVersion = 1

// Read adds a manifest, or several one behind the other. What is said of an object
// again replaces what was said before.
func (m *Manifest) Read(r io.Reader) error {
	dec := json.NewDecoder(r)
	for known := false; ; known = true {
		var doc struct {
			Version int `json:"version"`
			Objects []struct {
				File  string         `json:"file"`
				Sites []manifestSite `json:"sites"`
			} `json:"objects"`
		}
		err := dec.Decode(&doc)
		wrong := (*json.UnmarshalTypeError)(nil)
		switch {
		case errors.Is(err, io.EOF) && known:
			return nil
		case errors.Is(err, io.EOF): // convert has failed, and nothing would be compared
			return errors.New("is no manifest: it is empty")
		case errors.As(err, &wrong):
			return fmt.Errorf("is no manifest: %s at byte %d is none of its values", wrong.Value, wrong.Offset)
		case err != nil:
			return fmt.Errorf("is no manifest: %w", err)
		case doc.Version != manifestVersion || doc.Objects == nil:
			return fmt.Errorf("is no manifest of version %d, as convert --json prints it", manifestVersion)
		}
		for _, o := range doc.Objects {
			m.add(o.File, o.Sites)
		}
	}
}

// add takes in the sites of one object that were recorded.
func (m *Manifest) add(object string, sites []manifestSite) {
	if m.byFile == nil {
		m.byFile, m.names = map[string][]*functionCopy{}, map[string]bool{}
	}
	type key struct {
		section, symbol string
		start           uint64
	}
	byKey := map[key]*functionCopy{}
	var copies []*functionCopy
	for _, s := range sites {
		if s.Record == nil || s.State == "refused" {
			continue
		}
		symbol := s.Symbol
		if symbol == "" {
			symbol = s.Function
		}
		k := key{s.Section, symbol, s.Offset - s.FunctionOffset}
		if byKey[k] == nil {
			byKey[k] = &functionCopy{object: object, symbol: symbol, sourceFile: s.SourceFile, size: s.FunctionSize}
			copies = append(copies, byKey[k])
			m.names[symbol] = true
		}
		byKey[k].sites = append(byKey[k].sites, s)
	}
	m.byFile[object] = copies
}

// imageSite is a site of an image.
type imageSite struct {
	ids     []string // of the probe object's names
	enabled bool
	offset  uint64 // from the function's start
	index   int    // among all sites of the image
}

// matches reports whether a site of an image is one of a manifest, but for its
// place.
func (s *imageSite) matches(want *manifestSite) bool {
	if s.enabled != want.enabled() {
		return false
	}
	for _, id := range s.ids {
		if id == want.Probe {
			return true
		}
	}
	return false
}
