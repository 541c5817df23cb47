// Package manifest describes the sites of objects: what a conversion does to each, and
// what an earlier one has done. docs/output.md describes its JSON.
package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"sdtconvert/internal/message"
)

// Version counts the incompatible changes of the format.
const Version = 2

// Object is what is said of one file, or of one member of an archive.
type Object struct {
	File    string   `json:"file"`
	Machine string   `json:"machine,omitempty"`
	Status  string   `json:"status"`
	Sites   []Site   `json:"sites"`
	Errors  []string `json:"errors,omitempty"`
}

// What came of an object.
const (
	Unchanged = "unchanged"
	Converted = "converted"
	Failed    = "failed"
)

// New makes an object that stays as it is and has no sites.
func New(file string) *Object {
	return &Object{File: file, Status: Unchanged, Sites: []Site{}}
}

// Site is one site. Offsets and sizes are in bytes.
type Site struct {
	Section        string  `json:"section"`
	Offset         uint64  `json:"offset"`             // in Section
	Function       string  `json:"function,omitempty"` // that holds it, "" for none
	FunctionOffset uint64  `json:"function_offset"`    // of the site, from the function's start
	Symbol         string  `json:"symbol,omitempty"`   // of the function, where it is another than Function
	FunctionSize   uint64  `json:"function_size,omitempty"`
	SourceFile     string  `json:"source_file,omitempty"` // of a local function
	Kind           string  `json:"kind"`                  // as arch.Describe tells it
	State          string  `json:"state"`                 // as package sites has it
	Probe          string  `json:"probe"`                 // its id
	Relocation     string  `json:"relocation,omitempty"`
	Record         *Record `json:"record,omitempty"`
	Note           *Note   `json:"note,omitempty"`  // of a site without a record
	HasNote        bool    `json:"noted,omitempty"` // a site with a record has a note too, or will have
	DOF            *DOF    `json:"dof,omitempty"`   // of a site that dtrace -G has disabled
	Old            Code    `json:"old,omitempty"`
	New            Code    `json:"new,omitempty"`
	Source         string  `json:"source,omitempty"`   // file:line
	Refused        string  `json:"refused,omitempty"`  // why the site cannot be converted
	OmittedArgs    string  `json:"left_out,omitempty"` // arguments that its note omits, and why

	text int // index of Section
}

// Record is what the record of a site says, or will say.
type Record struct {
	Section string `json:"section"`
	Probe   string `json:"probe"`  // the symbol of the probe object
	Offset  uint64 `json:"offset"` // of the recorded instruction, in the site's section
}

// Note is what the note of SystemTap's readers says about a site: names as it has them,
// with __ and not a dash.
type Note struct {
	Provider  string `json:"provider"`
	Name      string `json:"name"`
	Semaphore string `json:"semaphore,omitempty"` // its symbol, "" for none
}

// DOF is by what DTrace's object format, which dtrace -G writes, refers to a site.
type DOF struct {
	Alias  string `json:"alias,omitempty"` // the symbol of its function, "" for Site.Symbol or Site.Function
	Offset uint64 `json:"offset"`          // of the instruction that kernels arm, in the site's section
}

// Code is bytes of instructions, in hexadecimal.
type Code []byte

// MarshalText implements encoding.TextMarshaler.
func (c Code) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, c), nil }

// Writer writes a manifest, one object after the other. It keeps none of them, because
// an archive may have any number of members.
type Writer struct {
	w     *bufio.Writer
	count int // of objects so far
	err   error
}

// NewWriter begins a manifest.
func NewWriter(w io.Writer) *Writer { return &Writer{w: bufio.NewWriter(w)} }

// Add writes an object. What keeps it from being written is for Close to return.
func (m *Writer) Add(o *Object) {
	const sites = `"sites": [`
	frame := *o
	frame.Sites = []Site{}
	text, err := json.MarshalIndent(&frame, "    ", "  ")
	if m.err = cmp.Or(m.err, err); m.err != nil {
		return
	}
	// No name has these bytes, since a quote within it is escaped.
	at := bytes.Index(text, []byte(sites)) + len(sites)
	separator := ",\n    "
	if m.count == 0 {
		separator = head() + "\n    "
	}
	m.count++
	m.write([]byte(separator))
	m.write(text[:at])
	m.sites(o.Sites)
	m.write(text[at:])
}

// sites writes what stands in the brackets, one site after the other: the text of all is
// several times as long as the object.
func (m *Writer) sites(sites []Site) {
	for i := range sites {
		text, err := json.MarshalIndent(&sites[i], "        ", "  ")
		if m.err = cmp.Or(m.err, err); m.err != nil {
			return
		}
		separator := ",\n        "
		if i == 0 {
			separator = "\n        "
		}
		m.write([]byte(separator))
		m.write(text)
	}
	if len(sites) > 0 {
		m.write([]byte("\n      "))
	}
}

// Close writes the end.
func (m *Writer) Close() error {
	if m.count == 0 {
		m.write([]byte(head() + "]\n}\n"))
	} else {
		m.write([]byte("\n  ]\n}\n"))
	}
	return cmp.Or(m.err, m.w.Flush())
}

// head returns what stands before the objects.
func head() string { return fmt.Sprintf("{\n  \"version\": %d,\n  \"objects\": [", Version) }

func (m *Writer) write(text []byte) {
	if m.err == nil {
		_, m.err = m.w.Write(message.EscapeJSON(text))
	}
}
