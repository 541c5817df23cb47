// Package manifest describes the sites of objects: what a conversion does to each, and
// what an earlier one has done. Its JSON, which docs/output.md describes, is written
// by conversions, and read to compare it with images.
package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Read calls each with the objects of a manifest, or of several one behind the other. It
// decodes one site at a time, and keeps no more than one object: a site takes several times
// as much memory as its text, and as the whole document would.
func Read(r io.Reader, each func(o *Object)) error {
	d := decoder{Decoder: json.NewDecoder(r), each: each}
	for hasDocument := false; ; hasDocument = true {
		version, objects, err := d.document()
		d.number++
		wrong := (*json.UnmarshalTypeError)(nil)
		switch {
		case errors.Is(err, io.EOF) && hasDocument:
			return nil
		case errors.Is(err, io.EOF): // convert has failed, and nothing would be compared
			return errors.New("is not a manifest: it is empty")
		case errors.As(err, &wrong):
			return fmt.Errorf("is not a manifest: %s at byte %d is not one of its values", wrong.Value, d.InputOffset())
		case errors.As(err, new(*json.SyntaxError)) && d.InputOffset() == 0:
			return errors.New("is not a manifest, as convert --json prints it")
		case err != nil:
			return fmt.Errorf("is not a manifest: %w", err)
		case version != Version || !objects:
			return fmt.Errorf("is not a manifest of version %d, as convert --json prints it", Version)
		}
	}
}

// decoder decodes manifests. Fields that it does not know are skipped.
type decoder struct {
	*json.Decoder
	each   func(o *Object)
	number int // of documents before this one
}

// document decodes one manifest. io.EOF says that there is none.
func (d decoder) document() (version int, objects bool, err error) {
	first, err := d.Token()
	if err != nil {
		return 0, false, err
	}
	if first != json.Delim('{') {
		return 0, false, wrongType(first)
	}
	err = d.fields(func(name string) error {
		switch name {
		case "version":
			return d.Decode(&version)
		case "objects":
			objects, err = d.elements(d.object)
			return err
		}
		return d.Decode(new(json.RawMessage)) // not asked for
	})
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return version, objects, err
}

// object decodes an object, and hands it on.
func (d decoder) object() error {
	o := Object{Document: d.number}
	first, err := d.Token()
	if err != nil {
		return err
	}
	if first != json.Delim('{') {
		return wrongType(first)
	}
	err = d.fields(func(name string) error {
		if name == "sites" {
			_, err := d.elements(func() error { return d.site(&o) })
			return err
		}
		field := map[string]any{"file": &o.File, "machine": &o.Machine, "status": &o.Status, "errors": &o.Errors}[name]
		if field == nil {
			field = new(json.RawMessage) // not asked for
		}
		return d.Decode(field)
	})
	if err == nil && o.File == "" {
		err = fmt.Errorf("the object before byte %d has no file", d.InputOffset())
	}
	if err == nil {
		d.each(&o)
	}
	return err
}

// site decodes a site of an object.
func (d decoder) site(o *Object) error {
	var s Site
	if err := d.Decode(&s); err != nil {
		return err
	}
	if s.Kind == "" || s.State == "" {
		return fmt.Errorf("the site before byte %d has no kind or state", d.InputOffset())
	}
	o.Sites = append(o.Sites, s)
	return nil
}

// fields calls value for each field of an object, behind its name, and reads its end.
func (d decoder) fields(value func(name string) error) error {
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := value(strings.ToLower(fmt.Sprint(name))); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// elements calls value for each element of an array, and reports whether there is one, and
// no null.
func (d decoder) elements(value func() error) (bool, error) {
	first, err := d.Token()
	switch {
	case err != nil || first == nil:
		return false, err
	case first != json.Delim('['):
		return false, wrongType(first)
	}
	for d.More() {
		if err := value(); err != nil {
			return false, err
		}
	}
	_, err = d.Token()
	return true, err
}

// wrongType returns the error of a value that stands where another kind belongs.
func wrongType(got json.Token) error {
	kind := "array"
	switch got.(type) {
	case json.Delim:
		if got == json.Delim('{') {
			kind = "object"
		}
	case string:
		kind = "string"
	case float64:
		kind = "number"
	case bool:
		kind = "bool"
	default:
		kind = "null"
	}
	return &json.UnmarshalTypeError{Value: kind}
}

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
		_, m.err = m.w.Write(text)
	}
}
