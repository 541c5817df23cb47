package report

import (
	"encoding/json"
	"io"
	"strings"
)

// Format is a form that reports are written in.
//
// CONTRIBUTING.md has the steps to add one. Names from files may hold anything, so it has
// to escape what would end a line or a value (package message has OneLine). TestFormats
// holds each against hostile reports.
type Format interface {
	// Write writes all of a report, which is not to be modified.
	Write(w io.Writer, r *Report) error
}

// formats are those that --format knows, the default first.
var formats = []struct {
	name   string
	format Format
}{
	{"text", text{}},
	{"json", jsonFormat{}},
	{"sarif", sarif{}},
	{"github", gitHub{}},
}

// Default is the name of the format that is written unless another is asked for.
var Default = formats[0].name

// Named finds a format, nil for none.
func Named(name string) Format {
	for _, f := range formats {
		if f.name == name {
			return f.format
		}
	}
	return nil
}

// Names lists the formats in a sentence.
func Names() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
