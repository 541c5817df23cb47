package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sdtconvert/internal/check"
	"sdtconvert/internal/testkit/objects"
)

// sampleReport has findings of all kinds, with what needs escaping.
func sampleReport() *checkReport {
	r := &checkReport{folder: "/src", files: []string{"a.o", "dir/lib.a(b.o)"}, known: 2, gone: []string{"live-call a.o f p 1"}}
	r.errors = []error{errors.New("c.o: is\nempty: 100%")}
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
		r.findings = append(r.findings, f)
	}
	return r
}

func validateSARIF(t *testing.T, data []byte) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(filepath.Join("testdata", "sarif", "sarif-2.1.0-rtm.5.json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestSARIF(t *testing.T) {
	for _, r := range []*checkReport{sampleReport(), {}} {
		var out bytes.Buffer
		if err := reportSARIF(r, &out); err != nil {
			t.Fatal(err)
		}
		validateSARIF(t, out.Bytes())
	}
	// What the program itself writes of real objects, with and without lines.
	names := []string{"calls.amd64-gcc12-g.o", "address.arm64-clang19-data.o", "bad.riscv64-gcc12-jal.o"}
	args := []string{"check", "--format=sarif"}
	for _, name := range names {
		args = append(args, filepath.Join(objects.Folder(), name))
	}
	var out, errs bytes.Buffer
	if status := runWith(&out, &errs, args...); status != exitFailed || errs.Len() > 0 {
		t.Errorf("status %d, %s", status, &errs)
	}
	validateSARIF(t, out.Bytes())
	var log sarifLog
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if len(run.Results) < 3 {
		t.Errorf("%d results", len(run.Results))
	}
	for _, result := range run.Results {
		if run.Tool.Driver.Rules[result.RuleIndex].ID != result.RuleID {
			t.Errorf("%+v", result)
		}
	}
	// The validator is one: it does not take this.
	c := jsonschema.NewCompiler()
	schema, err := c.Compile(filepath.Join("testdata", "sarif", "sarif-2.1.0-rtm.5.json"))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := jsonschema.UnmarshalJSON(strings.NewReader(`{"version": "2.1.0", "runs": [{"tool": {"driver": {}}}]}`))
	if schema.Validate(v) == nil {
		t.Error("a driver without a name is valid")
	}
}

// GitHub's own reader of workflow commands splits at "::", "," and "=", and undoes
// the escapes.
func TestGitHub(t *testing.T) {
	var out bytes.Buffer
	if err := reportGitHub(sampleReport(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if want := len(check.Rules) + 3; len(lines) != want {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), want, &out)
	}
	want := "::error file=a b/c%2Cd%3Ae%25.c,line=1,title=live-call::dir/lib.a(b.o): .text+0x10: in f+0x4 (a b/c,d:e%25.c:1): p: 100%25 of%0D%0Alines, or: some"
	if lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
	if want := "::error file=dir/lib.a,title=stub-address::dir/lib.a(b.o): .text+0x10: in f+0x4: p: 100%25 of%0D%0Alines, or: some"; lines[1] != want {
		t.Errorf("got  %s\nwant %s", lines[1], want)
	}
	if want := "::error title=refused-call::no place"; lines[2] != want {
		t.Errorf("got  %s\nwant %s", lines[2], want)
	}
	if got := strings.Join(lines[len(lines)-3:], "\n"); got != `::error title=sdtconvert::c.o: is%0Aempty: 100%25
::notice title=baseline::live-call a.o f p 1 is gone; --write-baseline writes what is left
2 files checked, 1 could not be: 16 errors, 2 notes, 2 more in the baseline` {
		t.Errorf("%s", got)
	}
	for i, rule := range check.Rules {
		if strings.HasPrefix(lines[i], "::notice ") != (rule.Severity == check.Note) {
			t.Errorf("%s", lines[i])
		}
	}
}

func TestPaths(t *testing.T) {
	r := &checkReport{folder: "/src/here"}
	for name, want := range map[string]string{
		"/src/here/a.c": "a.c", "/src/here/../b.c": "/src/here/../b.c", "/src/herewith/a.c": "/src/herewith/a.c",
		"a/../b.c": "b.c", "/src/here/..a/c.c": "..a/c.c", "/": "/",
	} {
		if got := r.path(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A service that shows the repository wants paths from its root on, wherever in it
// the check has run.
func TestPathsOfCheckouts(t *testing.T) {
	r := &checkReport{folder: "/repo/build", checkout: "/repo"}
	for name, want := range map[string]string{
		"/repo/src/a.c": "src/a.c", "/repo/build/gen.c": "build/gen.c", "a.o": "build/a.o", "../lib/b.o": "lib/b.o", "/usr/include/c.h": "/usr/include/c.h",
	} {
		if got := r.checkedOut(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	r.findings = []check.Finding{{Rule: check.LiveCall, File: "a.o", Source: "/repo/src/a.c", Line: 1}, {Rule: check.LiveCall, File: "a.o"}}
	var gitHub, sarif bytes.Buffer
	if err := errors.Join(reportGitHub(r, &gitHub), reportSARIF(r, &sarif)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"src/a.c", "build/a.o"} {
		if !strings.Contains(gitHub.String(), "file="+file+",") || !strings.Contains(sarif.String(), `"uri": "`+file+`"`) {
			t.Errorf("no %s in\n%s%s", file, &gitHub, &sarif)
		}
	}
}

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
