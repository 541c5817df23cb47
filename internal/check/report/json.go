package report

import (
	"fmt"
	"io"

	"sdtconvert/internal/check"
)

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
	Rule           string         `json:"rule"`
	Severity       check.Severity `json:"severity"`
	File           string         `json:"file,omitempty"`
	Section        string         `json:"section,omitempty"`
	Address        string         `json:"address,omitempty"` // hexadecimal: JSON's numbers are too short
	Function       string         `json:"function,omitempty"`
	FunctionOffset uint64         `json:"function_offset,omitempty"`
	Symbol         string         `json:"symbol,omitempty"`
	Unsized        bool           `json:"unsized,omitempty"`
	Source         string         `json:"source,omitempty"`
	Line           int            `json:"line,omitempty"`
	Probe          string         `json:"probe,omitempty"`
	Message        string         `json:"message"`
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
	return encodeJSON(w, out)
}
