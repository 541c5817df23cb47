package check

// A report says what checks have found: for people, for other programs and
// for CI services.

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"sdtconvert/internal/message"
)

// Report is what a check has found.
type Report struct {
	Files    []string // that were checked
	Sites    int      // in these
	Probes   int      // that have a site
	Findings []Finding
	Errors   []error // why others could not be

	Directory string // the working directory, "" when not known
	Checkout  string // that of the repository, where a CI service says so, or ""
}

// Add adds what a set has found.
func (r *Report) Add(set *Set) {
	r.Files = append(r.Files, set.Files()...)
	r.Sites, r.Probes = set.Sites()
	r.Findings = append(r.Findings, set.Findings()...)
	r.Errors = append(r.Errors, set.Errors()...)
}

// Count returns how many findings are of a severity.
func (r *Report) Count(s Severity) int {
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

// sourceLine returns the line of a finding as file:line, "" if it is not known.
func (r *Report) sourceLine(f *Finding) string {
	if f.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", r.path(f.Source), f.Line)
}

// sentence returns what a finding says, behind the function and the probe.
func sentence(f *Finding) string {
	text := f.Message
	if f.Probe != "" {
		text = probeText(f.Probe) + ": " + text
	}
	if where := f.Where(); where != "" {
		text = "in " + where + ": " + text
	}
	return text
}

// summary says what was checked, and what came of it: "no errors" stands there only if there are files, each was
// checked, and nothing was found, not even a note.
func (r *Report) summary() string {
	var results []string
	if n := len(r.Errors); n > 0 {
		results = append(results, message.Plural(n, "file")+" could not be checked")
	}
	if n := r.Count(Error); n > 0 {
		results = append(results, message.Plural(n, "error"))
	}
	if n := r.Count(Note); n > 0 {
		results = append(results, message.Plural(n, "note"))
	}
	switch {
	case len(results) > 0:
	case len(r.Files) == 0:
		results = []string{"nothing was checked"}
	default:
		results = []string{"no errors"}
	}
	return fmt.Sprintf("%s of %s in %s: %s", message.Plural(r.Sites, "site"), message.Plural(r.Probes, "probe"),
		message.Plural(len(r.Files), "file"), strings.Join(results, ", "))
}

// probeText returns a probe or a pattern of probes as lines name it: in quotes if it ends with a
// colon, which would not end there otherwise.
func probeText(probe string) string {
	if strings.HasSuffix(probe, ":") {
		return strconv.Quote(probe)
	}
	return probe
}

// pathFrom returns a path from a directory on, if it is below, and as it is otherwise.
func pathFrom(directory, name string) string {
	if directory == "" || !filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	below, err := filepath.Rel(directory, name)
	if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
		return name
	}
	return below
}

// fileOf returns the file of a name: of a member of an archive, lib.a(member.o), the archive. Both
// may have parentheses of their own, in pairs.
func fileOf(name string) string {
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 {
			if name[i] != '(' {
				break
			}
			return name[:i]
		}
	}
	return name
}
