package convert

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/manifest"
	"sdtconvert/internal/message"
)

// Result is what came of one file.
type Result struct {
	Lines    bytes.Buffer          // of text for standard output
	Messages bytes.Buffer          // for standard error
	Warnings []message.FileWarning // that are not among the messages
	Failed   bool                  // and the messages say why
	// Objects are for a manifest, if one is wanted: the file, or the members of an
	// archive.
	Objects []*manifest.Object

	path     string
	verbose  bool               // whether warnings are among the messages
	manifest bool               // whether one is wanted
	entry    *manifest.Object   // of the file itself, or nil
	changed  []*manifest.Object // those that are converted once the file is written
}

// warn takes in a warning, which begins with the name of its file if it is an
// *elfreloc.Error.
func (r *Result) warn(err error) {
	located := (*elfreloc.Error)(nil)
	if r.verbose || !errors.As(err, &located) {
		message.Warning(&r.Messages, err)
		return
	}
	r.Warnings = append(r.Warnings, message.FileWarning{File: located.File, Text: strings.TrimPrefix(err.Error(), located.File+": ")})
}

// addConversion takes in the warnings and the entry of a conversion, but not its error.
func (r *Result) addConversion(result *conversion) {
	for _, err := range result.warnings {
		r.warn(err)
	}
	if result.entry == nil {
		return
	}
	r.Objects = append(r.Objects, result.entry)
	if result.output != nil {
		r.changed = append(r.changed, result.entry)
	}
}

// addResult takes in what came of another file.
func (r *Result) addResult(m *Result) {
	r.Lines.Write(m.Lines.Bytes())
	r.Messages.Write(m.Messages.Bytes())
	r.Warnings, r.Objects = append(r.Warnings, m.Warnings...), append(r.Objects, m.Objects...)
	r.Failed = r.Failed || m.Failed
}

// markWritten says that the file is written, with lines about what was converted.
func (r *Result) markWritten(lines []byte) {
	r.Lines.Write(lines)
	r.markConverted()
}

// markConverted says that what was to change is written.
func (r *Result) markConverted() {
	for _, object := range r.changed {
		object.Status = manifest.Converted
	}
}

// Print writes the messages about a file and the lines about its sites to w, and adds its
// warnings to the tally.
func (r *Result) Print(w io.Writer, warnings *message.Tally) {
	for _, text := range [][]byte{r.Messages.Bytes(), r.Lines.Bytes()} {
		if len(text) > 0 {
			w.Write(text)
		}
	}
	warnings.Add(r.Warnings...)
}

// AddError takes in an error of the file.
func (r *Result) AddError(err error) {
	if r.entry == nil && r.manifest {
		r.entry = manifest.New(r.path)
		r.Objects = append(r.Objects, r.entry)
	}
	r.addError(r.entry, err)
}

// addError takes in an error, or each of several that were joined.
func (r *Result) addError(object *manifest.Object, err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			r.addError(object, err)
		}
		return
	}
	r.Failed = true
	message.Error(&r.Messages, err)
	if object != nil {
		object.Status = manifest.Failed
		object.Errors = append(object.Errors, err.Error())
	}
}
