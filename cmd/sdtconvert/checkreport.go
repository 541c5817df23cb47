package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/message"
)

// checkReport is what check has found.
type checkReport struct {
	files    []string // that were looked at
	findings []check.Finding
	errors   []error  // of files that could not be looked at
	known    int      // findings that the baseline has
	gone     []string // fingerprints that only the baseline has
	folder   string   // the working folder, "" when not known
	checkout string   // that of the repository, where a CI service says so, or ""
}

func newCheckReport(p *program) *checkReport {
	folder, err := os.Getwd()
	if err != nil {
		folder = ""
	}
	return &checkReport{folder: folder, checkout: p.Getenv("GITHUB_WORKSPACE")}
}

func (r *checkReport) count(s check.Severity) int {
	n := 0
	for i := range r.findings {
		if r.findings[i].Rule.Severity == s {
			n++
		}
	}
	return n
}

// path is how a file is shown: from the working folder on, if it lies in there.
func (r *checkReport) path(name string) string { return pathBelow(r.folder, name) }

// checkedOut is how a file is shown to a service that knows the repository, but not
// where in it the check has run.
func (r *checkReport) checkedOut(name string) string {
	if r.checkout == "" {
		return r.path(name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.folder, name)
	}
	return pathBelow(r.checkout, name)
}

func pathBelow(folder, name string) string {
	if folder == "" || !filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	below, err := filepath.Rel(folder, name)
	if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
		return name
	}
	return below
}

// reportFormat writes a report.
type reportFormat func(r *checkReport, w io.Writer) error

var reportFormats = map[string]reportFormat{
	"text": reportText, "json": reportJSON, "sarif": reportSARIF, "github": reportGitHub,
}

// reportText writes a line for each finding, and one that sums them up.
func reportText(r *checkReport, out io.Writer) error {
	w := bufio.NewWriter(out)
	for i := range r.findings {
		f := &r.findings[i]
		for _, part := range []string{f.File, f.Place} {
			if part != "" {
				fmt.Fprintf(w, "%s: ", message.OneLine(part))
			}
		}
		fmt.Fprintf(w, "%s: %s [%s]\n", f.Rule.Severity, message.OneLine(r.sentence(f)), f.Rule.Name)
	}
	for _, key := range r.gone {
		fmt.Fprintf(w, "baseline: %s\n", message.OneLine(goneMessage(key)))
	}
	fmt.Fprintln(w, r.summary())
	return w.Flush()
}

// sentence says what a finding is, with all that is known of its place but the
// address.
func (r *checkReport) sentence(f *check.Finding) string {
	text := f.Where()
	if f.Line != 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s (%s:%d)", text, r.path(f.Source), f.Line))
	}
	if text != "" {
		text = "in " + text + ": "
	}
	if f.Probe != "" {
		text += f.Probe + ": "
	}
	return text + f.Message
}

func (r *checkReport) summary() string {
	found := "nothing found"
	if errors, notes := r.count(check.Error), r.count(check.Note); errors+notes > 0 {
		found = message.Plural(errors, "error") + ", " + message.Plural(notes, "note")
	}
	files := message.Plural(len(r.files), "file") + " checked"
	if len(r.errors) > 0 {
		files += ", " + fmt.Sprint(len(r.errors)) + " could not be"
	}
	if r.known > 0 {
		found += fmt.Sprintf(", %d more in the baseline", r.known)
	}
	return files + ": " + found
}

func goneMessage(key string) string { return key + " is gone; --write-baseline writes what is left" }
