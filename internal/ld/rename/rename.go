// Package rename replaces names in text on its way: those of temporary files by
// those that people know.
//
// All names begin with one prefix, which nothing else contains, so text without it
// passes as it comes. Where one name begins another, the longer one is meant.
package rename

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
)

// Names says what is replaced by what.
type Names struct {
	prefix  []byte
	names   map[string]string
	lengths []int // of names, descending
}

// New has no names yet. All that are added begin with prefix.
func New(prefix string) *Names {
	return &Names{prefix: []byte(prefix), names: map[string]string{}}
}

// Add adds a name, unless it is known.
func (n *Names) Add(name, instead string) {
	if _, known := n.names[name]; known {
		return
	}
	n.names[name] = instead
	at, found := slices.BinarySearchFunc(n.lengths, len(name), func(a, b int) int { return b - a })
	if !found {
		n.lengths = slices.Insert(n.lengths, at, len(name))
	}
}

// Prefix returns what all names begin with.
func (n *Names) Prefix() string { return string(n.prefix) }

// Respell returns the names of n as some format writes them: names changed by one
// function, and what takes their place by another.
func (n *Names) Respell(name, instead func(string) string) *Names {
	with := New(name(string(n.prefix)))
	for _, was := range slices.Sorted(maps.Keys(n.names)) {
		with.Add(name(was), instead(n.names[was]))
	}
	return with
}

// lookup finds the longest name that text begins with.
func (n *Names) lookup(text []byte) (name, instead string) {
	for _, l := range n.lengths {
		if l > len(text) {
			continue
		}
		if instead, ok := n.names[string(text[:l])]; ok {
			return string(text[:l]), instead
		}
	}
	return "", ""
}

// Bytes replaces the names in a whole text. It is the text itself if there are none.
func (n *Names) Bytes(text []byte) []byte {
	if !bytes.Contains(text, n.prefix) {
		return text
	}
	var out bytes.Buffer
	w := n.Writer(&out)
	w.Write(text)
	w.Close()
	return out.Bytes()
}

// Writer replaces names in what is written to it. It holds back what may be the
// beginning of one, until Close.
func (n *Names) Writer(to io.Writer) io.WriteCloser { return &writer{Names: n, to: to} }

type writer struct {
	*Names
	to   io.Writer
	held []byte
}

func (w *writer) Write(b []byte) (int, error) {
	w.held = append(w.held, b...)
	return len(b), w.flush(false)
}

func (w *writer) Close() error { return w.flush(true) }

func (w *writer) flush(end bool) error {
	var out []byte
	text := w.held
	for len(text) > 0 {
		at := bytes.Index(text, w.prefix)
		if at < 0 {
			keep := 0
			if !end {
				keep = beginning(text, w.prefix)
			}
			out = append(out, text[:len(text)-keep]...)
			text = text[len(text)-keep:]
			break
		}
		out = append(out, text[:at]...)
		text = text[at:]
		if !end && w.undecided(text) {
			break
		}
		name, instead := w.lookup(text)
		if name == "" { // an unknown file
			out = append(out, w.prefix...)
			text = text[len(w.prefix):]
			continue
		}
		out = append(out, instead...)
		text = text[len(name):]
	}
	w.held = append(w.held[:0], text...)
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}

// undecided reports whether more text may make a longer name of this.
func (w *writer) undecided(text []byte) bool {
	if len(w.lengths) == 0 || len(text) >= w.lengths[0] {
		return false
	}
	for name := range w.names {
		if len(name) > len(text) && strings.HasPrefix(name, string(text)) {
			return true
		}
	}
	return false
}

// beginning returns the length of the longest end of text that a prefix begins with.
func beginning(text, prefix []byte) int {
	for l := min(len(text), len(prefix)-1); l > 0; l-- {
		if bytes.HasPrefix(prefix, text[len(text)-l:]) {
			return l
		}
	}
	return 0
}
