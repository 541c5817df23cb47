package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"sdtconvert/arch"
	"sdtconvert/internal/input"
	"sdtconvert/internal/sitestate"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
	"sdtconvert/resolve"
)

// manifestVersion counts the incompatible changes of the manifest's format,
// which docs/manifest.md describes.
const manifestVersion = 1

// manifestObject is what the manifest says of one file.
type manifestObject struct {
	File    string         `json:"file"`
	Machine string         `json:"machine,omitempty"`
	Status  string         `json:"status"`
	Sites   []manifestSite `json:"sites"`
	Errors  []string       `json:"errors,omitempty"`
}

const (
	statusUnchanged = "unchanged"
	statusConverted = "converted"
	statusFailed    = "failed"
)

// manifestSite is one site. Offsets are in bytes.
type manifestSite struct {
	Section        string          `json:"section"`
	Offset         uint64          `json:"offset"`
	Function       string          `json:"function,omitempty"`
	FunctionOffset uint64          `json:"function_offset"`
	Symbol         string          `json:"symbol,omitempty"`
	FunctionSize   uint64          `json:"function_size,omitempty"`
	SourceFile     string          `json:"source_file,omitempty"`
	Kind           string          `json:"kind"`
	State          string          `json:"state"`
	Probe          string          `json:"probe"`
	Relocation     string          `json:"relocation,omitempty"`
	Record         *manifestRecord `json:"record,omitempty"`
	Old            string          `json:"old,omitempty"`
	New            string          `json:"new,omitempty"`
	Source         string          `json:"source,omitempty"`
	Refused        string          `json:"refused,omitempty"`

	text     int    // index of Section
	old, new []byte // as in Old and New
}

// manifestRecord is what the record of a site says, or will say.
type manifestRecord struct {
	Section string `json:"section"`
	Probe   string `json:"probe"`
	Offset  uint64 `json:"offset"`
}

const (
	stateLive     = sitestate.Live     // still calls the stub
	stateDisabled = sitestate.Disabled // converted earlier
	stateRefused  = "refused"          // cannot be converted
	stateUnknown  = sitestate.Unknown  // recorded, but with bytes that are no disabled form
)

func newManifestObject(file string) *manifestObject {
	return &manifestObject{File: file, Status: statusUnchanged, Sites: []manifestSite{}}
}

// describe lists the sites of an object: those of a plan, which may be nil, and
// those of earlier records, whose probe objects begin with prefix.
func (m *manifestObject) describe(s *input.Object, plan *patch.Plan, prefix string, entries []linkerset.Entry) error {
	if s.Machine != nil {
		m.Machine = s.Machine.Traits().Name
	}
	if plan == nil && len(entries) == 0 {
		return nil
	}
	functions, err := resolve.New(s.Object, resolve.Options{})
	if err != nil {
		return err
	}
	if plan != nil {
		for i := range plan.Sites {
			m.Sites = append(m.Sites, liveSite(plan, &plan.Sites[i]))
		}
		for i := range plan.Refused {
			m.Sites = append(m.Sites, refusedSite(plan, &plan.Refused[i]))
		}
	}
	disabled, err := earlierSites(s, prefix, entries)
	if err != nil {
		return err
	}
	m.Sites = append(m.Sites, disabled...)
	sortSites(m.Sites)
	for i := range m.Sites {
		site := &m.Sites[i]
		site.Section = s.Sections[site.text].Name
		site.Old, site.New = hex.EncodeToString(site.old), hex.EncodeToString(site.new)
		if f, ok := functions.Lookup(site.text, site.Offset); ok {
			site.Function, site.FunctionOffset, site.FunctionSize = f.Name, site.Offset-f.Start, f.Size
			site.SourceFile = functions.SourceFile(f)
			if f.Raw != f.Name {
				site.Symbol = f.Raw
			}
		}
	}
	return nil
}

// kindOf names the kind of a planned site.
func kindOf(s *patch.Site) string { return arch.Describe(s.Stub.Kind, s.Change.Site.Form) }

// manifestWriter prints results: as one JSON document, or as they are. It keeps none
// of them, because an archive may have any number of members.
type manifestWriter struct {
	w     *bufio.Writer
	json  bool
	count int // of objects in the document so far
	err   error
}

func newManifestWriter(w io.Writer, json bool) *manifestWriter {
	return &manifestWriter{w: bufio.NewWriter(w), json: json}
}

func (m *manifestWriter) object(r *result) {
	if !m.json {
		m.write(r.stdout.Bytes())
		m.err = cmp.Or(m.err, m.w.Flush()) // before the messages of the next one
		return
	}
	for i, object := range r.objects {
		text, err := json.MarshalIndent(object, "    ", "  ")
		if err != nil {
			m.err = cmp.Or(m.err, err)
			return
		}
		separator := ",\n    "
		if m.count == 0 {
			separator = manifestHead + "\n    "
		}
		m.count++
		m.write([]byte(separator))
		m.write(text)
		r.objects[i] = nil
	}
}

// manifestHead is what stands before the objects.
var manifestHead = fmt.Sprintf("{\n  \"version\": %d,\n  \"objects\": [", manifestVersion)

func (m *manifestWriter) write(text []byte) {
	if m.err == nil {
		_, m.err = m.w.Write(text)
	}
}

func (m *manifestWriter) close() error {
	switch {
	case m.json && m.count == 0:
		m.write([]byte(manifestHead + "]\n}\n"))
	case m.json:
		m.write([]byte("\n  ]\n}\n"))
	}
	return cmp.Or(m.err, m.w.Flush())
}
