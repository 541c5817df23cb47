package check

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sdtconvert/internal/message"
)

// ReportFormat is a form that reports are written in.
//
// CONTRIBUTING.md has the steps to add one. Names from files may hold anything, so it has
// to escape what would end a line or a value (package message has Escape and EscapeJSON). TestFormats
// holds each against hostile reports.
type ReportFormat interface {
	// Write writes all of a report, which is not to be modified.
	Write(w io.Writer, r *Report) error
}

// reportFormats are those that --format knows, the default first.
var reportFormats = []struct {
	name   string
	format ReportFormat
}{
	{"text", textFormat{}},
	{"json", jsonFormat{}},
	{"github", gitHubFormat{}},
}

// DefaultFormat is the name of the format that is written unless another is asked for.
var DefaultFormat = reportFormats[0].name

// FormatNames returns the names of all formats.
func FormatNames() []string {
	var names []string
	for _, f := range reportFormats {
		names = append(names, f.name)
	}
	return names
}

// ParseFormat returns the format of a name.
func ParseFormat(name string) (ReportFormat, error) {
	for _, f := range reportFormats {
		if f.name == name {
			return f.format, nil
		}
	}
	names, last := FormatNames(), len(reportFormats)-1
	return nil, fmt.Errorf("unknown format %q; known are %s and %s", name, strings.Join(names[:last], ", "), names[last])
}

// textFormat has a line for each finding, and one that sums them up. A line begins as those of compilers do, with
// the source line, by which editors and CI services find it; or else with the file and the place in it.
type textFormat struct{}

func (textFormat) Write(out io.Writer, r *Report) error {
	w := bufio.NewWriter(out)
	for i := range r.Findings {
		f := &r.Findings[i]
		words := []string{r.sourceLine(f), string(f.Rule.Severity), f.File, f.Place}
		if f.Line == 0 {
			words = []string{f.File, f.Place, string(f.Rule.Severity)}
		}
		for _, word := range words {
			if word != "" {
				fmt.Fprintf(w, "%s: ", message.Escape(word))
			}
		}
		fmt.Fprintf(w, "%s [%s]\n", message.Escape(sentence(f)), f.Rule.Name)
	}
	fmt.Fprintln(w, r.summary())
	return w.Flush()
}

// jsonVersion counts the incompatible changes of the JSON that docs/output.md
// describes.
const jsonVersion = 2

// jsonFormat is one document.
type jsonFormat struct{}

type jsonReport struct {
	Version  int           `json:"version"`
	Files    int           `json:"files"`
	Sites    int           `json:"sites"`
	Probes   int           `json:"probes"`
	Findings []jsonFinding `json:"findings"`
	Errors   []string      `json:"errors"`
}

type jsonFinding struct {
	Rule           string   `json:"rule"`
	Severity       Severity `json:"severity"`
	File           string   `json:"file,omitempty"`
	Section        string   `json:"section,omitempty"`
	Address        string   `json:"address,omitempty"` // hexadecimal: JSON's numbers are too short
	Function       string   `json:"function,omitempty"`
	FunctionOffset uint64   `json:"function_offset,omitempty"`
	Symbol         string   `json:"symbol,omitempty"`
	Unsized        bool     `json:"unsized,omitempty"`
	Source         string   `json:"source,omitempty"`
	Line           int      `json:"line,omitempty"`
	Probe          string   `json:"probe,omitempty"`
	Message        string   `json:"message"`
}

func (jsonFormat) Write(w io.Writer, r *Report) error {
	out := jsonReport{Version: jsonVersion, Files: len(r.Files), Sites: r.Sites, Probes: r.Probes, Findings: []jsonFinding{}, Errors: []string{}}
	for i := range r.Findings {
		f := &r.Findings[i]
		j := jsonFinding{
			Rule: f.Rule.Name, Severity: f.Rule.Severity, File: f.File, Section: f.Section,
			Function: f.Function, FunctionOffset: f.FunctionOffset, Symbol: f.Symbol, Unsized: f.Unsized, Line: f.Line,
			Probe: f.Probe, Message: f.Message,
		}
		if f.Place != "" {
			j.Address = fmt.Sprintf("%#x", f.Address)
		}
		if f.Line != 0 {
			j.Source = r.path(f.Source)
		}
		out.Findings = append(out.Findings, j)
	}
	for _, err := range r.Errors {
		out.Errors = append(out.Errors, err.Error())
	}
	enc := json.NewEncoder(message.JSONWriter{W: w})
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// gitHubFormat is workflow commands, which GitHub shows as annotations of lines.
type gitHubFormat struct{}

func (gitHubFormat) Write(out io.Writer, r *Report) error {
	w := bufio.NewWriter(out)
	for i := range r.Findings {
		f := &r.Findings[i]
		command, properties := "error", ""
		if f.Rule.Severity == Note {
			command = "notice"
		}
		text := sentence(f)
		switch {
		case f.Line != 0:
			properties = fmt.Sprintf("file=%s,line=%d,", gitHubProperty(r.checkedOut(f.Source)), f.Line)
		case f.File != "":
			properties = fmt.Sprintf("file=%s,", gitHubProperty(r.checkedOut(fileOf(f.File))))
		}
		for _, word := range []string{f.Place, f.File, r.sourceLine(f)} { // logs show no properties
			if word != "" {
				text = word + ": " + text
			}
		}
		fmt.Fprintf(w, "::%s %stitle=%s::%s\n", command, properties, gitHubProperty(f.Rule.Name), gitHubData(text))
	}
	for _, err := range r.Errors {
		fmt.Fprintf(w, "::error title=sdtconvert::%s\n", gitHubData(strings.Join(message.Lines(err), "; ")))
	}
	fmt.Fprintln(w, r.summary())
	return w.Flush()
}

// gitHubData and gitHubProperty write what ends a property as in URLs. GitHub decodes these escapes and writes the
// result to its log, so control characters have to be escaped before.
func gitHubData(text string) string { return gitHubEscapes.Replace(message.Escape(text)) }

func gitHubProperty(text string) string {
	return gitHubSeparators.Replace(gitHubData(text))
}

var (
	gitHubEscapes    = strings.NewReplacer("%", "%25")
	gitHubSeparators = strings.NewReplacer(":", "%3A", ",", "%2C")
)
