package check

import (
	"io"
	"slices"

	"sdtconvert/image"
	"sdtconvert/internal/manifest"
)

// Manifest says which sites objects had when they were converted. It is read from
// the JSON of docs/output.md.
type Manifest struct {
	copies []*functionCopy
	byFile map[string]*manifestObject
	reads  int             // calls of Read
	names  map[string]bool // symbols of functions
}

// functionCopy is a function of one object, with its sites. A linker keeps one of
// the copies of a function that several objects have.
type functionCopy struct {
	object     string
	symbol     string // "" for sites that no function holds
	sourceFile string // of a local function; "" for others
	size       uint64 // bytes, 0 when not known
	sites      []manifest.Site

	complete bool     // some image has all its sites
	lost     []*lost  // by image
	keptIn   []string // images that have another copy of the function
}

// manifestObject is what a document says of the objects of one name, which several members of an archive
// may have.
type manifestObject struct {
	read, document int
	copies         []*functionCopy
}

// Read adds a manifest, or several one behind the other. What a later one says of an object
// replaces what an earlier one says.
func (m *Manifest) Read(r io.Reader) error {
	m.reads++
	return manifest.Read(r, m.add)
}

// add takes in the sites of one object that have a record or a note.
func (m *Manifest) add(o *manifest.Object) {
	if m.byFile == nil {
		m.byFile, m.names = map[string]*manifestObject{}, map[string]bool{}
	}
	type key struct {
		section, symbol string
		start           uint64
	}
	byKey := map[key]*functionCopy{}
	var copies []*functionCopy
	for _, s := range o.Sites {
		if s.Record == nil && s.Note == nil || s.State == manifest.Refused {
			continue
		}
		symbol := s.Symbol
		if symbol == "" {
			symbol = s.Function
		}
		k := key{s.Section, symbol, s.Offset - s.FunctionOffset}
		if byKey[k] == nil {
			byKey[k] = &functionCopy{object: o.File, symbol: symbol, sourceFile: s.SourceFile, size: s.FunctionSize}
			copies = append(copies, byKey[k])
			m.names[symbol] = true
		}
		byKey[k].sites = append(byKey[k].sites, s)
	}
	d := m.byFile[o.File]
	if d == nil || d.read != m.reads || d.document != o.Document {
		d = &manifestObject{read: m.reads, document: o.Document}
		m.byFile[o.File] = d
	}
	d.copies = append(d.copies, copies...)
}

// imageSite is a site of an image.
type imageSite struct {
	at       image.Addr
	ids      []string // of the probe object's names
	enabled  bool
	noteOnly bool   // by a note alone
	nameless bool   // in no function that has a symbol and a size
	offset   uint64 // from the function's start
	index    int    // among all sites of the image
}

// matches reports whether a site of an image may be one of a manifest, wherever it is. A site with a
// record matches one that had a note, and not the reverse.
func (s *imageSite) matches(want *manifest.Site) bool {
	return s.enabled == want.Enabled() && (want.Note != nil || !s.noteOnly) && slices.Contains(s.ids, want.Probe)
}
