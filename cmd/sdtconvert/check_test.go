package main

import (
	"os"
	"strings"
	"testing"

	"sdtconvert/internal/check"
)

// The help and the manual page of checks tell of every rule, in the same words.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	manual := string(page)
	for _, rule := range check.Rules {
		if !strings.Contains(usageCheck, "    "+rule.Name) || !strings.Contains(usageCheck, " "+rule.Summary+"\n") {
			t.Errorf("the help does not tell of %s: %s", rule.Name, rule.Summary)
		}
		_, text, ok := strings.Cut(manual, "\n### "+rule.Name+"\n")
		text, _, _ = strings.Cut(text, "\n###")
		if !ok || !strings.Contains(text, "Cure:") && rule != check.DroppedSite {
			t.Errorf("docs/check.md does not tell of %s, or of no cure", rule.Name)
		}
		if strings.HasPrefix(strings.TrimSpace(text), "A note:") != (rule.Severity == check.Note) {
			t.Errorf("docs/check.md has another severity of %s", rule.Name)
		}
	}
}
