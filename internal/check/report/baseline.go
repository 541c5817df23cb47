package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
)

// Baseline are the findings that are known, by their fingerprints. The file has a
// line for each, sorted, so that version control can merge two of them.
type Baseline map[string]bool

const baselineHead = "# What sdtconvert check found and was told to accept: rule, file, function, probe, number.\n"

// maxBaseline is the size in MiB of the largest baseline that is written or read. A line
// may be as long as the file: names of symbols may have any length.
const maxBaseline = 64

// ReadBaseline reads a baseline; without a name it is empty.
func ReadBaseline(name string) (Baseline, error) {
	b := Baseline{}
	if name == "" {
		return b, nil
	}
	data, err := input.ReadAtMost(name, maxBaseline)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 5 || check.RuleNamed(fields[0]) == nil {
			return nil, fmt.Errorf("%s:%d: is not a line of a baseline; --write-baseline writes one", name, n)
		}
		b[strings.Join(fields, " ")] = true
	}
	return b, nil
}

// Baseline returns the file of a baseline that has the errors of a report, if all files
// could be looked at: it would lack those of others.
func (r *Report) Baseline() ([]byte, error) {
	if n := len(r.Errors); n > 0 {
		return nil, fmt.Errorf("is not written, because %s could not be looked at", message.Plural(n, "file"))
	}
	var lines []string
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Rule.Severity == check.Error {
			lines = append(lines, f.Fingerprint()+"\n")
		}
	}
	slices.Sort(lines)
	data := []byte(baselineHead + strings.Join(lines, ""))
	if len(data) > maxBaseline<<20 {
		return nil, fmt.Errorf("is not written, because it would have more than %d MiB, and --baseline reads no more", maxBaseline)
	}
	return data, nil
}

// Apply takes what is known out of a report. What is known and was not found is
// gone, unless its file or its rule was not looked at.
func (b Baseline) Apply(r *Report) {
	found := map[string]bool{}
	r.Findings = slices.DeleteFunc(r.Findings, func(f check.Finding) bool {
		key := f.Fingerprint()
		known := b[key] && f.Rule.Severity == check.Error
		found[key] = found[key] || known
		if known {
			r.Known++
		}
		return known
	})
	looked := map[string]bool{"-": true}
	for _, name := range r.Files {
		looked[check.Field(check.Base(name))] = true
	}
	for key := range b {
		fields := strings.Fields(key)
		if !found[key] && looked[fields[1]] && !slices.Contains(r.Allowed, fields[0]) {
			r.Gone = append(r.Gone, key)
		}
	}
	slices.Sort(r.Gone)
}
