package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/message"
)

// baseline are the findings that are known, by their fingerprints. The file has a
// line for each, sorted, so that version control can merge two of them.
type baseline map[string]bool

const baselineHead = "# What sdtconvert check found and was told to accept: rule, file, function, probe, number.\n"

// readBaseline reads a baseline; without a name it is empty.
func readBaseline(name string) (baseline, error) {
	b := baseline{}
	if name == "" {
		return b, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 5 || check.RuleNamed(fields[0]) == nil {
			return nil, fmt.Errorf("%s:%d: is no line of a baseline; --write-baseline writes one", name, n)
		}
		b[strings.Join(fields, " ")] = true
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: is no baseline: %w", name, err)
	}
	return b, nil
}

// writeBaseline writes the errors of a report, if all files could be looked at: it
// would lack those of others.
func (p *program) writeBaseline(name string, r *checkReport) error {
	if n := len(r.errors); n > 0 {
		return fmt.Errorf("%s: is not written, because %s could not be looked at", name, message.Plural(n, "file"))
	}
	var lines []string
	for i := range r.findings {
		if f := &r.findings[i]; f.Rule.Severity == check.Error {
			lines = append(lines, f.Fingerprint()+"\n")
		}
	}
	slices.Sort(lines)
	return p.files.New(name, []byte(baselineHead+strings.Join(lines, "")))
}

// apply takes what is known out of a report. What is known and was not found is
// gone, unless its file or its rule was not looked at.
func (b baseline) apply(r *checkReport, allow map[string]bool) {
	found := map[string]bool{}
	r.findings = slices.DeleteFunc(r.findings, func(f check.Finding) bool {
		key := f.Fingerprint()
		known := b[key] && f.Rule.Severity == check.Error
		found[key] = found[key] || known
		if known {
			r.known++
		}
		return known
	})
	looked := map[string]bool{"-": true}
	for _, name := range r.files {
		looked[check.Field(check.Base(name))] = true
	}
	for key := range b {
		fields := strings.Fields(key)
		if !found[key] && looked[fields[1]] && !allow[fields[0]] {
			r.gone = append(r.gone, key)
		}
	}
	slices.Sort(r.gone)
}
