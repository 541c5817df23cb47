// Package message writes what people read: errors and lines, in which no name from a file is
// taken for a command by a terminal or a CI service.
package message

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error prints an error on a line of its own, and one that stands for several
// on as many.
func Error(w io.Writer, err error) { write(w, "sdtconvert: ", err) }

func Warning(w io.Writer, err error) { write(w, "sdtconvert: warning: ", err) }

func write(w io.Writer, prefix string, err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			write(w, prefix, err)
		}
		return
	}
	io.WriteString(w, prefix+OneLine(err.Error())+"\n")
}

// Line prints a line of names and what is known of them.
func Line(w io.Writer, format string, args ...any) {
	io.WriteString(w, OneLine(fmt.Sprintf(format, args...))+"\n")
}

// OneLine writes control characters as escapes. Names may have them in hostile files,
// and a terminal or a CI service would take what follows for a command.
func OneLine(text string) string {
	if strings.IndexFunc(text, unicode.IsControl) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsControl(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
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
