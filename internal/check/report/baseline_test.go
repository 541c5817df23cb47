package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/check"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
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
		if known.Apply(r); r.KnownCount != 1 || len(r.Findings)+len(r.Gone) > 0 {
			t.Errorf("%.20q: %d known, %d found, %d gone", name, r.KnownCount, len(r.Findings), len(r.Gone))
		}
	}
}

// Files of one name are distinguished, wherever the repository is; lines of an earlier version,
// which did not, count for each file of the name.
func TestBaselineOfFilesOfOneName(t *testing.T) {
	report := func(directory string, names ...string) *Report {
		opts := check.Options{Directory: directory}
		r := checked(opts, names...)
		r.Directory = directory
		return r
	}
	here, there := t.TempDir(), t.TempDir()
	object := disk.Read(t, filepath.Join(objects.Directory(), "locals.amd64-clang19-O2.o"))
	for _, name := range []string{"o1/x.o", "o2/x.o"} {
		expect.OK(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(here, name)), 0o777), os.MkdirAll(filepath.Dir(filepath.Join(there, name)), 0o777)))
		disk.Write(t, filepath.Join(here, name), object)
		disk.Write(t, filepath.Join(there, name), object)
	}
	first := report(here, filepath.Join(here, "o1/x.o"))
	path := filepath.Join(t.TempDir(), "known")
	disk.Write(t, path, expect.Value(first.Baseline())(t))
	for directory, one := range map[string]int{here: len(first.Findings), there: len(first.Findings)} {
		r := report(directory, filepath.Join(directory, "o1/x.o"), filepath.Join(directory, "o2/x.o"))
		all := len(r.Findings)
		expect.Value(ReadBaseline(path))(t).Apply(r)
		if r.KnownCount != one || len(r.Findings) != all-one || one == 0 || len(r.Gone) > 0 {
			t.Errorf("%d known of %d, %d left, %v gone", r.KnownCount, all, len(r.Findings), r.Gone)
		}
	}
	old := strings.ReplaceAll(byBaseHead+strings.SplitAfterN(string(disk.Read(t, path)), "\n", 2)[1], " o1/x.o ", " x.o ")
	disk.Write(t, path, old)
	r := report(there, filepath.Join(there, "o2/x.o"))
	expect.Value(ReadBaseline(path))(t).Apply(r)
	if r.KnownCount != len(first.Findings) || len(r.Findings)+len(r.Gone) > 0 {
		t.Errorf("by base names: %d known, %d left, %v gone", r.KnownCount, len(r.Findings), r.Gone)
	}
}

// Nothing is read without end, and nothing written that could not be read.
func TestBaselineIsBounded(t *testing.T) {
	expect.Contains(t, expect.Failure(ReadBaseline("/dev/zero")), "more than 64 MiB")
	long := strings.Repeat("x", maxBaseline<<19)
	r := &Report{Findings: []check.Finding{{Rule: check.LiveCall, File: "a.o", Function: long, Probe: long, Ordinal: 1}}}
	expect.Contains(t, expect.Failure(r.Baseline()), "more than 64 MiB")
}
