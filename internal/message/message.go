// Package message writes what people read: errors and lines, in which no name from a file is
// taken for a command by a terminal or a CI service.
package message

import (
	"fmt"
	"io"
	"os"
	"strings"

	"sdtconvert/internal/paths"
)

// Error prints an error on a line of its own, and one that stands for several
// on as many.
func Error(w io.Writer, err error) { write(w, "sdtconvert: ", err) }

func Warning(w io.Writer, err error) { write(w, "sdtconvert: warning: ", err) }

func write(w io.Writer, prefix string, err error) {
	for _, line := range Lines(err) {
		io.WriteString(w, prefix+line+"\n")
	}
}

// Lines returns the lines of an error: an error that joins several has one for each.
func Lines(err error) []string {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{Escape(err.Error())}
	}
	var lines []string
	for _, err := range several.Unwrap() {
		lines = append(lines, Lines(err)...)
	}
	return lines
}

// Line prints a line of names and what is known of them.
func Line(w io.Writer, format string, args ...any) {
	io.WriteString(w, Escape(fmt.Sprintf(format, args...))+"\n")
}

// OrDash returns what a column shows: a dash where nothing is known.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Plural counts things: "1 file", "2 files".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Tally collects warnings about files. Print writes one line for each text, however many
// files it is about: a build of thousands of files would print thousands of lines. The
// zero value is empty.
type Tally struct {
	warnings []*tallied // in the order of the first files
	byText   map[string]*tallied
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
		warning := t.byText[w.Text]
		if warning == nil {
			if t.byText == nil {
				t.byText = map[string]*tallied{}
			}
			warning = &tallied{text: w.Text, first: w.File}
			t.byText[w.Text] = warning
			t.warnings = append(t.warnings, warning)
		}
		warning.files++
	}
}

// Print prints all warnings.
func (t *Tally) Print(w io.Writer) {
	for _, warning := range t.warnings {
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

// Nearest returns the name that a word is a misspelling of, or "".
func Nearest(word string, names []string) string {
	nearest, least := "", 3 // more than two wrong letters make another word
	for _, name := range names {
		distance := editDistance(word, name)
		if len(word) > 2 && strings.HasPrefix(name, word) {
			distance = 1
		}
		if distance < least && distance < len(name) {
			nearest, least = name, distance
		}
	}
	return nearest
}

// editDistance returns how many letters have to be inserted, deleted or replaced to
// make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// LinkersFlag returns the flag by which compilers link through the installation that this program is of, or
// -BDIR, as documents call it, for a program that is not installed.
func LinkersFlag() string {
	if program, err := os.Executable(); err == nil {
		if program, err = paths.Real(program); err == nil {
			directory := paths.Join(paths.Directory(paths.Directory(program)), "libexec/sdtconvert")
			if _, err := os.Stat(paths.Join(directory, "ld")); err == nil {
				return "-B" + directory
			}
		}
	}
	return "-BDIR (DIR is the directory of linkers that scripts/install prints)"
}
