package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
)

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
func (m *Writer) sites(all []Site) {
	for i := range all {
		text, err := json.MarshalIndent(&all[i], "        ", "  ")
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
	if len(all) > 0 {
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
