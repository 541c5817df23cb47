// Package report writes what checks have found: for people, for other programs and
// for CI services.
package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/message"
)

// Report is what a check has found.
type Report struct {
	Files    []string // that were checked
	Sites    int      // in these
	Probes   int      // that have a site
	Findings []check.Finding
	Errors   []error  // why others could not be
	Allowed  []string // rules that are not applied

	Directory string // the working directory, "" when not known
	Checkout  string // that of the repository, where a CI service says so, or ""
}

// Add adds what a set has found, but for what is allowed.
func (r *Report) Add(set *check.Set) {
	r.Files = append(r.Files, set.Files()...)
	r.Sites, r.Probes = set.Sites()
	for _, f := range set.Findings() {
		if !slices.Contains(r.Allowed, f.Rule.Name) {
			r.Findings = append(r.Findings, f)
		}
	}
	r.Errors = append(r.Errors, set.Errors()...)
}

// Count returns how many findings are of a severity.
func (r *Report) Count(s check.Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Rule.Severity == s {
			n++
		}
	}
	return n
}

// path returns how a file is shown: from the working directory on, if it lies in there.
func (r *Report) path(name string) string { return pathFrom(r.Directory, name) }

// checkedOut returns how a file is shown to a service that knows the repository, but not
// where in it the check has run.
func (r *Report) checkedOut(name string) string {
	if r.Checkout == "" {
		return r.path(name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.Directory, name)
	}
	return pathFrom(r.Checkout, name)
}

// sentence says what a finding is, with all that is known of its place but the
// address.
func (r *Report) sentence(f *check.Finding) string {
	text := f.Where()
	if f.Line != 0 {
		line := fmt.Sprintf("%s:%d", r.path(f.Source), f.Line)
		if text == "" {
			text = line
		} else {
			text += " (" + line + ")"
		}
	}
	if text != "" {
		text = "in " + text + ": "
	}
	if f.Probe != "" {
		text += probeText(f.Probe) + ": "
	}
	return text + f.Message
}

func (r *Report) summary() string {
	found := "no errors"
	errors, notes := r.Count(check.Error), r.Count(check.Note)
	if errors > 0 {
		found = message.Plural(errors, "error")
	}
	if notes > 0 {
		found += ", " + message.Plural(notes, "note")
	}
	files := fmt.Sprintf("%s of %s in %s", message.Plural(r.Sites, "site"), message.Plural(r.Probes, "probe"), message.Plural(len(r.Files), "file"))
	if len(r.Errors) > 0 {
		files += fmt.Sprintf(", %d could not be checked", len(r.Errors))
	}
	return files + ": " + found
}

// probeText returns a probe or a pattern of probes as lines name it: in quotes if it ends with a
// colon, which would not end there otherwise.
func probeText(probe string) string {
	if strings.HasSuffix(probe, ":") {
		return strconv.Quote(probe)
	}
	return probe
}
