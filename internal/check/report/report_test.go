package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sdtconvert/internal/check"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// sampleReport has findings of all kinds, with what needs escaping.
func sampleReport() *Report {
	r := &Report{Directory: "/src", Files: []string{"a.o", "dir/lib.a(b.o)"}, KnownCount: 2, Gone: []string{"live-call a.o f p 1"}}
	r.Errors = []error{errors.New("c.o: is\nempty: 100%")}
	for i, rule := range check.Rules {
		f := check.Finding{
			Rule: rule, File: "dir/lib.a(b.o)", Place: ".text+0x10", Section: ".text", Address: 0x10, Function: "f", FunctionOffset: 4,
			Source: "/src/a b/c,d:e%.c", Line: i + 1, Probe: "p", Message: "100% of\r\nlines, or: some", Ordinal: 1,
		}
		switch i % 3 {
		case 1:
			f.Line, f.Source = 0, ""
		case 2:
			f = check.Finding{Rule: rule, Message: "no place", Ordinal: 1}
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

func validateSARIF(t *testing.T, data []byte) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema := expect.Value(c.Compile(filepath.Join("testdata", "sarif", "sarif-2.1.0-rtm.5.json")))(t)
	v := expect.Value(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)
	if err := schema.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestSARIF(t *testing.T) {
	for _, r := range []*Report{sampleReport(), {}} {
		var out bytes.Buffer
		expect.OK(t, (sarif{}).Write(&out, r))
		validateSARIF(t, out.Bytes())
	}
	// What comes of real objects, with and without lines.
	var names []string
	for _, name := range []string{"calls.amd64-gcc12-g.o", "address.arm64-clang19-data.o", "bad.riscv64-gcc12-jal.o"} {
		names = append(names, filepath.Join(objects.Directory(), name))
	}
	r := checked(check.Options{}, names...)
	if len(r.Errors) > 0 || len(r.Files) != len(names) {
		t.Errorf("looked at %v: %v", r.Files, r.Errors)
	}
	var out bytes.Buffer
	expect.OK(t, (sarif{}).Write(&out, r))
	validateSARIF(t, out.Bytes())
	var log sarifLog
	expect.OK(t, json.Unmarshal(out.Bytes(), &log))
	run := log.Runs[0]
	if len(run.Results) < 3 {
		t.Errorf("%d results", len(run.Results))
	}
	for _, result := range run.Results {
		expect.Equal(t, result.RuleID, run.Tool.Driver.Rules[result.RuleIndex].ID, "%+v", result)
	}
	// The validator is one: it does not take this.
	c := jsonschema.NewCompiler()
	schema := expect.Value(c.Compile(filepath.Join("testdata", "sarif", "sarif-2.1.0-rtm.5.json")))(t)
	v, _ := jsonschema.UnmarshalJSON(strings.NewReader(`{"version": "2.1.0", "runs": [{"tool": {"driver": {}}}]}`))
	if schema.Validate(v) == nil {
		t.Error("a driver without a name is valid")
	}
}

// GitHub refuses a log with a result that has no location: one of no file is in the first.
func TestSARIFOfNoFile(t *testing.T) {
	r := &Report{Directory: "/src", Given: []string{"/src/bin/app", "lib.so"}, Findings: []check.Finding{{Rule: check.MissingProbe, Probe: "a:::b"}, {Rule: check.NoProbes}}}
	var out bytes.Buffer
	expect.OK(t, (sarif{}).Write(&out, r))
	validateSARIF(t, out.Bytes())
	var log sarifLog
	expect.OK(t, json.Unmarshal(out.Bytes(), &log))
	for _, result := range log.Runs[0].Results {
		if len(result.Locations) != 1 || result.Locations[0].Physical.Artifact.URI != "bin/app" {
			t.Errorf("%+v", result)
		}
	}
}

// GitHub's own reader of workflow commands splits at "::", "," and "=", and undoes
// the escapes.
func TestGitHub(t *testing.T) {
	var out bytes.Buffer
	expect.OK(t, (gitHub{}).Write(&out, sampleReport()))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if want := len(check.Rules) + 3; len(lines) != want {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), want, &out)
	}
	want := "::error file=a b/c%2Cd%3Ae%25.c,line=1,title=not-converted::dir/lib.a(b.o): .text+0x10: in f+0x4 (a b/c,d:e%25.c:1): p: 100%25 of%0D%0Alines, or: some"
	expect.Equal(t, want, lines[0])
	expect.Equal(t, "::error file=dir/lib.a,title=live-call::dir/lib.a(b.o): .text+0x10: in f+0x4: p: 100%25 of%0D%0Alines, or: some", lines[1])
	expect.Equal(t, "::error title=stub-address::no place", lines[2])
	notes := 0
	for _, rule := range check.Rules {
		if rule.Severity == check.Note {
			notes++
		}
	}
	expect.Equal(t, fmt.Sprintf(`::error title=sdtconvert::c.o: is%%0Aempty: 100%%25
::notice title=baseline::live-call a.o f p 1 is gone; --write-baseline writes what is left
0 sites of 0 probes in 2 files, 1 could not be checked: %d errors, %d notes, 2 more in the baseline`, len(check.Rules)-notes, notes), strings.Join(lines[len(lines)-3:], "\n"))
	for i, rule := range check.Rules {
		expect.Equal(t, rule.Severity == check.Note, strings.HasPrefix(lines[i], "::notice "), "%s: is a notice", lines[i])
	}
}

func TestPaths(t *testing.T) {
	r := &Report{Directory: "/src/here"}
	for name, want := range map[string]string{
		"/src/here/a.c": "a.c", "/src/here/../b.c": "/src/here/../b.c", "/src/herewith/a.c": "/src/herewith/a.c",
		"a/../b.c": "b.c", "/src/here/..a/c.c": "..a/c.c", "/": "/",
	} {
		expect.Equal(t, want, r.path(name), "%s", name)
	}
}

// A service that shows the repository wants paths from its root on, wherever in it
// the check has run.
func TestPathsOfCheckouts(t *testing.T) {
	r := &Report{Directory: "/repo/build", Checkout: "/repo"}
	for name, want := range map[string]string{
		"/repo/src/a.c": "src/a.c", "/repo/build/gen.c": "build/gen.c", "a.o": "build/a.o", "../lib/b.o": "lib/b.o", "/usr/include/c.h": "/usr/include/c.h",
	} {
		expect.Equal(t, want, r.checkedOut(name), "%s", name)
	}
	r.Findings = []check.Finding{{Rule: check.LiveCall, File: "a.o", Source: "/repo/src/a.c", Line: 1}, {Rule: check.LiveCall, File: "a.o"}}
	var forGitHub, forSARIF bytes.Buffer
	expect.OK(t, errors.Join((gitHub{}).Write(&forGitHub, r), (sarif{}).Write(&forSARIF, r)))
	for _, file := range []string{"src/a.c", "build/a.o"} {
		if !strings.Contains(forGitHub.String(), "file="+file+",") || !strings.Contains(forSARIF.String(), `"uri": "`+file+`"`) {
			t.Errorf("no %s in\n%s%s", file, &forGitHub, &forSARIF)
		}
	}
}

// A finding is one line too.
func TestFindingsAreLines(t *testing.T) {
	name := "x\n::error::y"
	r := &Report{Gone: []string{"live-call " + name}, Findings: []check.Finding{
		{Rule: check.LiveCall, File: name, Place: name, Function: name, Source: name, Line: 1, Probe: name, Message: name},
	}}
	var out bytes.Buffer
	expect.OK(t, (text{}).Write(&out, r))
	expect.Equal(t, 3, strings.Count(out.String(), "\n"), "lines of %s", &out)
}

// Whatever names are in a report, every format has as many lines as with others, and
// leaves the report as it is.
func TestFormats(t *testing.T) {
	made := func(name string) *Report {
		r := &Report{Files: []string{name}, Errors: []error{errors.New(name)}, Gone: []string{"live-call " + name}, Directory: "/src", Release: name}
		for _, rule := range check.Rules {
			r.Findings = append(r.Findings, check.Finding{
				Rule: rule, File: name, Place: name, Section: name, Function: name, Symbol: name, Source: name, Line: 1, Probe: name, Message: name, Ordinal: 1,
			})
		}
		return r
	}
	write := func(f Format, r *Report) string {
		var out bytes.Buffer
		expect.OK(t, f.Write(&out, r))
		return out.String()
	}
	const hostile = "x\n::error::y\r\n\x1b[31m\"'<%0A\xff"
	for _, f := range formats {
		r := made(hostile)
		plain, got := write(f.format, made("x")), write(f.format, r)
		if strings.Count(got, "\n") != strings.Count(plain, "\n") || strings.Contains(got, "\r") || plain == "" {
			t.Errorf("%s prints\n%q, where other names give\n%q", f.name, got, plain)
		}
		if !reflect.DeepEqual(r, made(hostile)) {
			t.Errorf("%s changes the report", f.name)
		}
	}
}

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
