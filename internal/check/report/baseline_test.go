package report

import (
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/check"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// What --write-baseline writes --baseline reads, however long or odd names are.
func TestBaselineOfAnyNames(t *testing.T) {
	for _, name := range []string{"f", strings.Repeat("long", 100_000), " ", "a b", "#", "\u00a0", "a\u2028b", "\xff", "\r"} {
		r := &Report{Findings: []check.Finding{{Rule: check.LiveCall, File: "a.o", Function: name, Probe: name, Ordinal: 1}}}
		data := expect.Value(r.Baseline())(t)
		path := filepath.Join(t.TempDir(), "known")
		disk.Write(t, path, data)
		known, err := ReadBaseline(path)
		if err != nil {
			t.Errorf("%.20q: %v", name, err)
			continue
		}
		if known.Apply(r); r.Known != 1 || len(r.Findings)+len(r.Gone) > 0 {
			t.Errorf("%.20q: %d known, %d found, %d gone", name, r.Known, len(r.Findings), len(r.Gone))
		}
	}
}

// Nothing is read without end, and nothing written that could not be read.
func TestBaselineIsBounded(t *testing.T) {
	expect.Contains(t, expect.Failure(ReadBaseline("/dev/zero")), "more than 64 MiB")
	long := strings.Repeat("x", maxBaseline<<19)
	r := &Report{Findings: []check.Finding{{Rule: check.LiveCall, File: "a.o", Function: long, Probe: long, Ordinal: 1}}}
	expect.Contains(t, expect.Failure(r.Baseline()), "more than 64 MiB")
}
