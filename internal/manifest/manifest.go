// Package manifest describes the sites of objects: what a conversion does to each, and
// what an earlier one has done. Its JSON, which docs/output.md describes, is written
// by conversions, and read to compare it with images.
package manifest

import (
	"encoding/hex"
	"strings"

	"sdtconvert/arch"
)

// Version counts the incompatible changes of the format.
const Version = 1

// Object is what is said of one file, or of one member of an archive.
type Object struct {
	File    string   `json:"file"`
	Machine string   `json:"machine,omitempty"`
	Status  string   `json:"status"`
	Sites   []Site   `json:"sites"`
	Errors  []string `json:"errors,omitempty"`
	// Document is the number of its document among those that Read has read, from 0. Objects
	// of one document and one File are members of one archive.
	Document int `json:"-"`
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
	State          string  `json:"state"`
	Probe          string  `json:"probe"` // its id
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

// Recorded returns the distance of the instruction that the record or the note of a site
// names from the start of its function. The site must have one of them.
func (s *Site) Recorded() uint64 {
	if s.Record == nil {
		return s.FunctionOffset
	}
	return s.FunctionOffset + (s.Record.Offset - s.Offset)
}

// Enabled reports whether a site is an is-enabled test.
func (s *Site) Enabled() bool {
	return strings.HasPrefix(s.Kind, arch.Describe(arch.Enabled, arch.Call))
}

// The states of a site.
const (
	Live     = "live"     // still calls the stub
	Disabled = "disabled" // converted earlier
	Refused  = "refused"  // cannot be converted
	Unknown  = "unknown"  // recorded, but with bytes that are not a disabled form
)

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

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Code) UnmarshalText(text []byte) (err error) {
	*c, err = hex.AppendDecode(nil, text)
	return err
}
