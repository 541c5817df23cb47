package manifest

import (
	"bufio"
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
	text, err := json.MarshalIndent(o, "    ", "  ")
	if m.err = cmp.Or(m.err, err); m.err != nil {
		return
	}
	separator := ",\n    "
	if m.count == 0 {
		separator = head() + "\n    "
	}
	m.count++
	m.write([]byte(separator))
	m.write(text)
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

// head is what stands before the objects.
func head() string { return fmt.Sprintf("{\n  \"version\": %d,\n  \"objects\": [", Version) }

func (m *Writer) write(text []byte) {
	if m.err == nil {
		_, m.err = m.w.Write(text)
	}
}
