package message

import (
	"io"
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
	first := indexHidden(text)
	if first < 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:first])
	for i := first; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			writeHex(&b, `\x`, rune(text[i]), 2)
		case !isHidden(r):
			b.WriteString(text[i : i+size])
		default:
			writeEscape(&b, r)
		}
		i += size
	}
	return b.String()
}

// indexHidden returns where the first character is that Escape writes otherwise, -1 if there is none.
func indexHidden(text string) int {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c > '~' {
			for j, r := range text[i:] {
				if r == utf8.RuneError || isHidden(r) {
					return i + j
				}
			}
			return -1
		}
	}
	return -1
}

// isHidden reports whether a character is not shown as itself: it is a control character, a format character, a
// separator of lines, or none that Unicode has assigned.
func isHidden(r rune) bool { return !unicode.IsGraphic(r) }

// shortEscapes are those of control characters that have a letter.
var shortEscapes = map[rune]string{'\a': `\a`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`}

func writeEscape(b *strings.Builder, r rune) {
	switch {
	case shortEscapes[r] != "":
		b.WriteString(shortEscapes[r])
	case r < utf8.RuneSelf:
		writeHex(b, `\x`, r, 2)
	case r <= 0xffff:
		writeHex(b, `\u`, r, 4)
	default:
		writeHex(b, `\U`, r, 8)
	}
}

// writeHex writes a number of so many hexadecimal digits.
func writeHex(b *strings.Builder, prefix string, r rune, digits int) {
	b.WriteString(prefix)
	for digits--; digits >= 0; digits-- {
		b.WriteByte("0123456789abcdef"[r>>(4*digits)&15])
	}
}

// EscapeJSON does for a document of JSON what Escape does for a line: in strings, what has no shape becomes \uNNNN, which
// readers take for the same character. encoding/json does so for control characters of 7 bits and line separators
// alone; it writes bytes that are no UTF-8 as \ufffd.
func EscapeJSON(document []byte) []byte {
	text := string(document)
	if indexHiddenJSON(text) < 0 {
		return document
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !isHiddenJSON(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			writeHex(&b, `\u`, high, 4)
			writeHex(&b, `\u`, low, 4)
		default:
			writeHex(&b, `\u`, r, 4)
		}
	}
	return []byte(b.String())
}

func indexHiddenJSON(text string) int { return strings.IndexFunc(text, isHiddenJSON) }

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
