package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"sdtconvert/internal/check"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// fuzzManifest names functions and probes of the committed objects.
const fuzzManifest = `{"version": 1, "objects": [{"file": "calls.o", "sites": [
	{"section": ".text", "offset": 4, "function": "kept", "function_offset": 4, "function_size": 18, "source_file": "calls.c",
	 "kind": "call", "state": "live", "probe": "calls___static", "record": {"offset": 4}},
	{"section": ".text", "offset": 36, "function": "calls_zero", "function_offset": 4,
	 "kind": "isenabled", "state": "disabled", "probe": "calls___zero", "record": {"offset": 38}},
	{"section": ".init.text", "offset": 1, "function_offset": 0, "kind": "call", "state": "live", "probe": "x", "record": {"offset": 1}}]}]}`

// FuzzCheck checks objects and images. What is in the file may lead to findings and
// errors, never to a panic or to a finding that cannot be written.
func FuzzCheck(f *testing.F) {
	seeds.Add(f)
	files := objects.NewScratch(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		checkBytes(t, files, data)
	})
}

// checked returns what a check of files with all rules finds.
func checked(opts check.Options, names ...string) *Report {
	opts.Names, opts.ProbePrefix, opts.Layouts = patch.DefaultNames(), "sdt_", linkerset.Layout{}.Candidates()
	opts.Warn, opts.Failed = func(error) {}, func(error) {}
	set := check.New(opts)
	for _, name := range names {
		set.Add(name)
	}
	r := &Report{}
	r.Add(set)
	return r
}

// checkChecked checks a file with all rules, and what comes of it.
func checkChecked(t *testing.T, name string) {
	t.Helper()
	m := &check.Manifest{}
	expect.OK(t, m.Read(strings.NewReader(fuzzManifest)))
	r := checked(check.Options{
		Manifest: m, Require: []check.Requirement{{Text: "x", Match: func(check.Probe) bool { return false }}},
	}, name)
	if len(r.Files)+len(r.Errors) == 0 {
		t.Fatal("neither looked at nor an error")
	}
	seen := map[string]bool{}
	for i := range r.Findings {
		finding := &r.Findings[i]
		if key := finding.Fingerprint(); seen[key] || len(strings.Fields(key)) != 5 || finding.Message == "" {
			t.Fatalf("%s: %+v", key, finding)
		} else {
			seen[key] = true
		}
	}
	for _, f := range formats {
		expect.OK(t, f.format.Write(io.Discard, r))
	}
}

// Prefixes of a file, and bytes of its tables with other bits, may lead to findings and
// errors.
func TestCheckOfBrokenFiles(t *testing.T) {
	files := objects.NewScratch(t)
	stride := 29
	switch {
	case product.All():
		stride = 7
	case testing.Short():
		stride = 67
	}
	for _, name := range product.Few(t.Name(), objects.OfEachMachine) {
		original := objects.Read(t, name)
		after, ok := converted.Object(t, original)
		if !ok {
			t.Fatalf("%s cannot be converted", name)
		}
		for _, data := range [][]byte{original, after} {
			for n := 0; n < len(data); n += stride {
				checkBytes(t, files, data[:n])
			}
			for _, r := range objects.Tables(t, data) {
				for at := r[0]; at < r[1]; at += stride {
					broken := bytes.Clone(data)
					broken[at] ^= 1 << (at % 8)
					checkBytes(t, files, broken)
					broken[at] = ^data[at]
					checkBytes(t, files, broken)
				}
			}
		}
	}
}

func checkBytes(t *testing.T, files *objects.Scratch, data []byte) {
	t.Helper()
	expect.OK(t, files.Write(data))
	checkChecked(t, files.Path())
}
