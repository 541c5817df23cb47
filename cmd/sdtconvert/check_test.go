package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/check"
	"sdtconvert/internal/check/report"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// The manual page of checks has every rule.
func TestRulesAreDocumented(t *testing.T) {
	manual := string(disk.Read(t, "../../docs/check.md"))
	for _, rule := range check.Rules {
		_, text, ok := strings.Cut(manual, "\n### "+rule.Name+"\n")
		text, _, _ = strings.Cut(text, "\n###")
		if !ok || !strings.Contains(text, "Cure:") && rule != check.DroppedSite {
			t.Errorf("docs/check.md does not describe %s, or has no cure", rule.Name)
		}
		expect.Equal(t, rule.Severity == check.Note, strings.HasPrefix(strings.TrimSpace(text), "A note:"), "docs/check.md: %s is a note", rule.Name)
	}
}

// The help, the manual and the manual page of checks name every format.
func TestFormatsAreDocumented(t *testing.T) {
	for _, format := range report.Names() {
		if !slices.Contains(strings.FieldsFunc(formatOption.help, func(r rune) bool { return r == ',' || r == ' ' }), format) {
			t.Errorf("the help does not name %s", format)
		}
		for path, text := range map[string]string{
			"../../docs/check.md":     "`--format " + format + "`",
			"../../docs/sdtconvert.1": "\n.Cm " + format + " ,\n",
		} {
			if page, err := os.ReadFile(path); err != nil {
				t.Error(err)
			} else if !strings.Contains(string(page), text) {
				t.Errorf("%s does not name %s", path, format)
			}
		}
	}
}
