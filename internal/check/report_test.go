package check

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// sampleReport has findings of all kinds, with what needs escaping.
func sampleReport() *Report {
	r := &Report{Directory: "/src", Files: []string{"a.o", "dir/lib.a(b.o)"}}
	r.Errors = []error{errors.New("c.o: is\nempty: 100%")}
	for i, rule := range Rules {
		f := Finding{
			Rule: rule, File: "dir/lib.a(b.o)", Place: ".text+0x10", Section: ".text", Address: 0x10, Function: "f", FunctionOffset: 4,
			Source: "/src/a b/c,d:e%.c", Line: i + 1, Probe: "p", Message: "100% of\r\nlines, or: some",
		}
		switch i % 3 {
		case 1:
			f.Line, f.Source = 0, ""
		case 2:
			f = Finding{Rule: rule, Message: "no place"}
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

// GitHub's own reader of workflow commands splits at "::", "," and "=", and undoes
// the escapes.
func TestGitHub(t *testing.T) {
	var out bytes.Buffer
	expect.OK(t, (gitHubFormat{}).Write(&out, sampleReport()))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if want := len(Rules) + 2; len(lines) != want {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), want, &out)
	}
	want := "::error file=a b/c%2Cd%3Ae%25.c,line=1,title=not-converted::a b/c,d:e%25.c:1: dir/lib.a(b.o): .text+0x10: in f+0x4: p: 100%25 of\\r\\nlines, or: some"
	expect.Equal(t, want, lines[0])
	expect.Equal(t, "::error file=dir/lib.a,title=live-call::dir/lib.a(b.o): .text+0x10: in f+0x4: p: 100%25 of\\r\\nlines, or: some", lines[1])
	expect.Equal(t, "::error title=stub-address::no place", lines[2])
	notes := 0
	for _, rule := range Rules {
		if rule.Severity == Note {
			notes++
		}
	}
	expect.Equal(t, fmt.Sprintf(`::error title=sdtconvert::c.o: is\nempty: 100%%25
0 sites of 0 probes in 2 files: 1 file could not be checked, %d errors, %d notes`, len(Rules)-notes, notes), strings.Join(lines[len(lines)-2:], "\n"))
	for i, rule := range Rules {
		expect.Equal(t, rule.Severity == Note, strings.HasPrefix(lines[i], "::notice "), "%s: is a notice", lines[i])
	}
}

// Lines of text begin with the source line, as those of compilers do, or else with the file.
func TestText(t *testing.T) {
	var out bytes.Buffer
	expect.OK(t, (textFormat{}).Write(&out, sampleReport()))
	lines := strings.Split(out.String(), "\n")
	expect.Equal(t, "a b/c,d:e%.c:1: error: dir/lib.a(b.o): .text+0x10: in f+0x4: p: 100% of\\r\\nlines, or: some [not-converted]", lines[0])
	expect.Equal(t, "dir/lib.a(b.o): .text+0x10: error: in f+0x4: p: 100% of\\r\\nlines, or: some [live-call]", lines[1])
	expect.Equal(t, "error: no place [stub-address]", lines[2])
	out.Reset()
	expect.OK(t, (textFormat{}).Write(&out, &Report{Findings: []Finding{{Rule: MissingProbe, Source: "/probes.txt", Line: 3, Probe: "a:::b", Message: "none"}}}))
	expect.Contains(t, out.String(), "/probes.txt:3: error: a:::b: none [missing-probe]\n")
}

// The summary says "no errors" only of files that were all checked, with nothing found.
func TestSummary(t *testing.T) {
	bad, note := Finding{Rule: LiveCall}, Finding{Rule: StrayNote}
	failed := errors.New("a.o: is empty")
	for _, c := range []struct {
		report Report
		want   string
	}{
		{Report{Sites: 2, Probes: 1, Files: []string{"a.o"}}, "2 sites of 1 probe in 1 file: no errors"},
		{Report{Files: []string{"a.o"}, Findings: []Finding{note, note}}, "0 sites of 0 probes in 1 file: 2 notes"},
		{Report{Files: []string{"a.o"}, Findings: []Finding{note, bad}}, "0 sites of 0 probes in 1 file: 1 error, 1 note"},
		{Report{Errors: []error{failed}}, "0 sites of 0 probes in 0 files: 1 file could not be checked"},
		{Report{Files: []string{"a.o"}, Errors: []error{failed, failed}, Findings: []Finding{bad}}, "0 sites of 0 probes in 1 file: 2 files could not be checked, 1 error"},
		{Report{}, "0 sites of 0 probes in 0 files: nothing was checked"},
	} {
		for _, f := range []ReportFormat{textFormat{}, gitHubFormat{}} {
			var out bytes.Buffer
			expect.OK(t, f.Write(&out, &c.report))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			expect.Equal(t, c.want, lines[len(lines)-1])
		}
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

func TestFilesOfMembers(t *testing.T) {
	for name, want := range map[string]string{
		"a.o": "a.o", "d/a.o": "d/a.o", "d/lib.a(a.o)": "d/lib.a", "d/thin.a(../e/a.o)": "d/thin.a", "thin.a(in.a(a.o))": "thin.a",
		"d(1)/lib.a(a(2).o)": "d(1)/lib.a", "d(1)/a.o": "d(1)/a.o", "a).o": "a).o", "(a.o)": "(a.o)", "": "",
	} {
		expect.Equal(t, want, fileOf(name), "%s", name)
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
	r.Findings = []Finding{{Rule: LiveCall, File: "a.o", Source: "/repo/src/a.c", Line: 1}, {Rule: LiveCall, File: "a.o"}}
	var out bytes.Buffer
	expect.OK(t, (gitHubFormat{}).Write(&out, r))
	for _, file := range []string{"src/a.c", "build/a.o"} {
		expect.Contains(t, out.String(), "file="+file+",")
	}
}

// A finding is one line too.
func TestFindingsAreLines(t *testing.T) {
	name := "x\n::error::y\x1b[m\x07\x9b\u009b\u202e\u2028"
	r := &Report{Findings: []Finding{
		{Rule: LiveCall, File: name, Place: name, Function: name, Source: name, Line: 1, Probe: name, Message: name},
	}}
	r.Errors = []error{errors.Join(errors.New(name), errors.New(name))}
	for i := range reportFormats {
		var out bytes.Buffer
		expect.OK(t, reportFormats[i].format.Write(&out, r))
		if reportFormats[i].name != "json" {
			expect.Equal(t, 2+i/2, strings.Count(out.String(), "\n"), "lines of %s", &out)
		} else if !json.Valid(out.Bytes()) {
			t.Errorf("no JSON: %q", &out)
		}
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }) || !utf8.Valid(out.Bytes()) {
			t.Errorf("%s: names reach the output as they are: %q", reportFormats[i].name, &out)
		}
	}
}

// Whatever names are in a report, every format has as many lines as with others, and
// leaves the report as it is.
func TestFormats(t *testing.T) {
	made := func(name string) *Report {
		r := &Report{Files: []string{name}, Errors: []error{errors.New(name)}, Directory: "/src"}
		for _, rule := range Rules {
			r.Findings = append(r.Findings, Finding{
				Rule: rule, File: name, Place: name, Section: name, Function: name, Symbol: name, Source: name, Line: 1, Probe: name, Message: name,
			})
		}
		return r
	}
	write := func(f ReportFormat, r *Report) string {
		var out bytes.Buffer
		expect.OK(t, f.Write(&out, r))
		return out.String()
	}
	const hostile = "x\n::error::y\r\n\x1b[31m\"'<%0A\xff"
	for _, f := range reportFormats {
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
func checked(opts Options, names ...string) *Report {
	opts.Names, opts.ProbePrefix, opts.Layouts = patch.DefaultNames(), "sdt_", linkerset.Layout{}.Candidates()
	opts.Warn, opts.Failed = func(error) {}, func(error) {}
	set := New(opts)
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
	r := checked(Options{Require: []Requirement{{Text: "x", Match: func(Probe, bool) bool { return false }}}}, name)
	if len(r.Files)+len(r.Errors) == 0 {
		t.Fatal("neither looked at nor an error")
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Rule == nil || f.Message == "" {
			t.Fatalf("%+v", f)
		}
	}
	for _, f := range reportFormats {
		expect.OK(t, f.format.Write(io.Discard, r))
	}
}

func checkBytes(t *testing.T, files *objects.Scratch, data []byte) {
	t.Helper()
	expect.OK(t, files.Write(data))
	checkChecked(t, files.Path())
}

// Loaders protect whole pages, so a semaphore in the page that PT_GNU_RELRO ends in can be written.
func TestUnreachable(t *testing.T) {
	segments := []elfreloc.Segment{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Vaddr: 0x1000, Filesz: 0x1000, Memsz: 0x1000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Vaddr: 0x2000, Filesz: 0x2f00, Memsz: 0x4000},
		{Type: elf.PT_GNU_RELRO, Flags: elf.PF_R, Vaddr: 0x3000, Filesz: 0x1800, Memsz: 0x1800},
	}
	const relro = "in memory that cannot be written once the program has started (PT_GNU_RELRO)"
	for addr, want := range map[uint64]string{
		0xffe: "not in the image", 0x1000: "in memory that cannot be written", 0x2000: "", 0x2ffe: "", 0x3000: relro, 0x3ffe: relro,
		0x4000: "", 0x4efe: "", 0x4eff: "in no place of the file, by which tracers name it to the kernel", 0x6000: "not in the image",
	} {
		expect.Equal(t, want, unreachable(segments, addr), "%#x", addr)
	}
}
