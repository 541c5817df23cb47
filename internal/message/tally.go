package message

import (
	"fmt"
	"io"
)

// Tally collects warnings about files. Print writes one line for each text, however many
// files it is about: a build of thousands of files would print thousands of lines. The
// zero value is empty.
type Tally struct {
	all    []*tallied // in the order of the first files
	byText map[string]*tallied
}

type tallied struct {
	text, first string
	files       int
}

// FileWarning is a warning about a file, which may be a member of an archive.
type FileWarning struct {
	File string
	Text string // without the name of the file: other files may have the same
}

// Add adds warnings.
func (t *Tally) Add(warnings ...FileWarning) {
	for _, w := range warnings {
		known := t.byText[w.Text]
		if known == nil {
			if t.byText == nil {
				t.byText = map[string]*tallied{}
			}
			known = &tallied{text: w.Text, first: w.File}
			t.byText[w.Text] = known
			t.all = append(t.all, known)
		}
		known.files++
	}
}

// Print prints all warnings.
func (t *Tally) Print(w io.Writer) {
	for _, warning := range t.all {
		about := warning.first
		if warning.files > 1 {
			about += " and " + Plural(warning.files-1, "other file")
		}
		text := fmt.Errorf("%s: %s", about, warning.text)
		if warning.files > 1 {
			text = fmt.Errorf("%w (-v names them)", text)
		}
		Warning(w, text)
	}
}
