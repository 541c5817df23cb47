package message

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape writes what has no shape on a terminal, or changes the shape of what follows, as an escape of Go: control
// characters, of 8 bits too (\x1b, \u009b), bytes that are no UTF-8 (\x9b), line separators, and characters that
// turn the direction of text or are not seen (\u202e). Names in hostile files have them, and a terminal or a CI
// service would take what follows for a command or show another name. Other text is returned as it is.
func Escape(text string) string {
	first := strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || isHidden(r) })
	if first < 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:first])
	for i := first; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !isHidden(r):
			b.WriteString(text[i : i+size])
		default:
			quoted := strconv.QuoteRuneToGraphic(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// isHidden reports whether a character is not shown as itself: it is a control character, a format character, a
// separator of lines, or none that Unicode has assigned. Nearly all are of ASCII.
func isHidden(r rune) bool { return (r < ' ' || r > '~') && !unicode.IsGraphic(r) }

// EscapeJSON does for a document of JSON what Escape does for a line: in strings, what has no shape becomes \uNNNN, which
// readers take for the same character. encoding/json does so for control characters of 7 bits and line separators
// alone; it writes bytes that are no UTF-8 as \ufffd.
func EscapeJSON(document []byte) []byte {
	text := string(document)
	if !strings.ContainsFunc(text, isHiddenJSON) {
		return document
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !isHiddenJSON(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

// isHiddenJSON leaves out the white space between values.
func isHiddenJSON(r rune) bool { return r >= '\x7f' && isHidden(r) }

// JSONWriter passes documents of JSON to W through EscapeJSON. Each Write holds whole characters, as those of a
// json.Encoder do.
type JSONWriter struct{ W io.Writer }

func (w JSONWriter) Write(document []byte) (int, error) {
	if _, err := w.W.Write(EscapeJSON(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}
