package report

import (
	"encoding/json"
	"fmt"
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
	{"github", gitHub{}},
}

// Default is the name of the format that is written unless another is asked for.
var Default = formats[0].name

// Names returns the names of all formats.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// ParseFormat returns the format of a name.
func ParseFormat(name string) (Format, error) {
	for _, f := range formats {
		if f.name == name {
			return f.format, nil
		}
	}
	names, last := Names(), len(formats)-1
	return nil, fmt.Errorf("unknown format %q; known are %s and %s", name, strings.Join(names[:last], ", "), names[last])
}

func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
