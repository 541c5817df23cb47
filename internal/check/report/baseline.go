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
type Baseline struct {
	lines map[string]bool
	// byBase says that the lines name files without directories, as those of earlier
	// versions do. Then a line counts for each file of the name.
	byBase bool
}

const (
	baselineHead = "# What sdtconvert check found and was told to accept: rule, path, function, probe, number.\n"
	byBaseHead   = "# What sdtconvert check found and was told to accept: rule, file, function, probe, number.\n"
)

// maxBaseline is the size in MiB of the largest baseline that is written or read. A line
// may be as long as the file: names of symbols may have any length.
const maxBaseline = 64

// ReadBaseline reads a baseline; without a name it is empty.
func ReadBaseline(name string) (Baseline, error) {
	b := Baseline{lines: map[string]bool{}}
	if name == "" {
		return b, nil
	}
	data, err := input.ReadAtMost(name, maxBaseline)
	if err != nil {
		return b, err
	}
	b.byBase = bytes.HasPrefix(data, []byte(byBaseHead))
	n := 0
	for line := range bytes.Lines(data) {
		n++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 5 || check.RuleNamed(fields[0]) == nil {
			return b, fmt.Errorf("%s:%d: is not a line of a baseline; --write-baseline writes one", name, n)
		}
		b.lines[strings.Join(fields, " ")] = true
	}
	return b, nil
}

// Baseline returns the contents of a baseline with the errors of a report. It fails if a file could not
// be checked, whose errors would be missing.
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

// Apply removes the known findings from a report. A line that no finding has is gone, unless its file
// was not checked or its rule not applied.
func (b Baseline) Apply(r *Report) {
	found, ordinals := map[string]bool{}, map[check.Key]int{}
	r.Findings = slices.DeleteFunc(r.Findings, func(f check.Finding) bool {
		line := f.Fingerprint()
		if b.byBase {
			key := f.Key()
			key.File = check.Base(f.File)
			ordinals[key]++
			line = key.Fingerprint(ordinals[key])
		}
		isKnown := b.lines[line] && f.Rule.Severity == check.Error
		found[line] = found[line] || isKnown
		if isKnown {
			r.KnownCount++
		}
		return isKnown
	})
	checked := map[string]bool{"-": true}
	for _, name := range r.Files {
		file := check.FileFrom(r.Directory, name)
		if b.byBase {
			file = check.Base(name)
		}
		checked[check.Field(file)] = true
	}
	for line := range b.lines {
		fields := strings.Fields(line)
		if !found[line] && checked[fields[1]] && !slices.Contains(r.Allowed, fields[0]) {
			r.Gone = append(r.Gone, line)
		}
	}
	slices.Sort(r.Gone)
}
