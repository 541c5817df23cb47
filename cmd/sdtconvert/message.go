package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printError prints an error on a line of its own, and one that stands for several
// on as many.
func printError(w io.Writer, err error) { printMessage(w, "sdtconvert: ", err) }

func printWarning(w io.Writer, err error) { printMessage(w, "sdtconvert: warning: ", err) }

func printMessage(w io.Writer, prefix string, err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			printMessage(w, prefix, err)
		}
		return
	}
	io.WriteString(w, prefix+oneLine(err.Error())+"\n")
}

// printLine prints a line of names and what is known of them.
func printLine(w io.Writer, format string, args ...any) {
	io.WriteString(w, oneLine(fmt.Sprintf(format, args...))+"\n")
}

// oneLine writes control characters as escapes. Names may have them in hostile files,
// and a terminal or a CI service would take what follows for a command.
func oneLine(text string) string {
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
