package output

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/process"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/provider/preprocess"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// read reads a file of the tests of package provider.
func read(t *testing.T, path string) []*provider.Provider {
	t.Helper()
	var preprocessed func(string) (string, error)
	if filepath.Base(path) != "agent.d" {
		tools.Need(t, "cc")
		cc := &preprocess.Options{Process: &process.Process{Stderr: os.Stderr, Environ: os.Environ()}, Target: preprocess.Target{HasSystem: true}}
		preprocessed = cc.File
	}
	return expect.Value(provider.Read(path, preprocessed))(t).Providers
}

var remark = regexp.MustCompile(`(?s)/\*.*?\*/`)

// What scripts of projects and their sources ask of any header of probes.
func TestLines(t *testing.T) {
	paths, err := filepath.Glob("../testdata/*.d")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		providers := read(t, path)
		for _, form := range []HeaderForm{NotesHeader, SharedHeader, StubsHeader, CallsHeader} {
			text := string(WriteHeader("some/probes.h.tmp", providers, form))
			expect.Equal(t, text, string(WriteHeader("other/probes.h.tmp", providers, form)), "%s: in another directory", path)
			expect.Contains(t, text, "\n#define _PROBES_H_TMP\n", "%s: no guard", path)
			for line := range strings.Lines(remark.ReplaceAllString(text, "")) {
				checkLine(t, path, strings.TrimSuffix(line, "\n"), providers)
			}
			for _, p := range providers {
				for _, probe := range p.Probes {
					for macro, n := range map[string]int{provider.Macro(p.Name, probe.Name): len(probe.Args), provider.MacroEnabled(p.Name, probe.Name): 0} {
						want := fmt.Sprintf("\n#define %s(%s) \\\n", macro, each(n, ", ", numbered("arg")))
						expect.Equal(t, 1, strings.Count(text, want), "%s: times that %q is there", path, want)
					}
				}
			}
		}
	}
}

// edited are what scripts replace in lines of code.
var edited = regexp.MustCompile(`\( *char|, *char|(char|void) *\*|\bconst char|#line|\.d"`)

var defined = regexp.MustCompile(`^#define \w+`)

func checkLine(t *testing.T, path, line string, providers []*provider.Provider) {
	t.Helper()
	if !strings.Contains(line, "(void *)0") && edited.MatchString(line) {
		t.Errorf("%s: a script would change %s", path, line)
	}
	line = defined.ReplaceAllString(line, "") // a probe may have the provider in its name
	for _, p := range providers {
		if strings.Count(line, strings.ToUpper(p.Name)+"_") > 0 {
			t.Errorf("%s: a script would change half of %s", path, line)
		}
	}
}

// Headers of one name with different probes take effect both; one that is read twice once.
func TestGuards(t *testing.T) {
	own := regexp.MustCompile(`#ifndef (_sdtp_header_\w+)`)
	a := own.FindSubmatch(WriteHeader("probes.h", read(t, "../testdata/database.d"), NotesHeader))
	b := own.FindSubmatch(WriteHeader("probes.h", read(t, "../testdata/toolkit.d"), NotesHeader))
	if a == nil || b == nil || bytes.Equal(a[1], b[1]) {
		t.Errorf("%s, %s", a, b)
	}
	for path, want := range map[string]string{"a/x-y.z.h": "_X_Y_Z_H", "tclDTrace.h": "_TCLDTRACE_H", "7.h": "_7_H"} {
		expect.Equal(t, want, guardName(path), "%s", path)
	}
}

// What is the same in each header is read as C by people, and by scripts as lines.
func TestMacrosAreComplete(t *testing.T) {
	text := macros()
	for n := range provider.MaxArgs + 1 {
		expect.Equal(t, 2, strings.Count(text, fmt.Sprintf("#define _sdtp_probe_%d(", n)), "%d arguments", n)
	}
	if strings.Count(text, "#if") != strings.Count(text, "#endif") {
		t.Error("conditions do not end")
	}
	if _, err := os.Stat("notes.h"); err != nil || !strings.Contains(notesText, "#else /* no notes */\n") {
		t.Error("the place of the macros for other compilers is missing", err)
	}
}

// FuzzWrite writes the headers of any providers that are free of faults: each macro is
// there once, and nothing in a remark, a string or a line that goes on gets out of it.
func FuzzWrite(f *testing.F) {
	names, err := filepath.Glob("../testdata/*.d")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		text := disk.Read(f, name)
		f.Add(string(text), filepath.Base(name))
	}
	f.Add("provider p { probe a(int (*f)(int), char x[3 + 4], struct s *const) : (int (*f)(int)); };", "a b.h")
	f.Fuzz(func(t *testing.T, text, name string) {
		file, err := provider.Parse(provider.NewScanner("x.d", text))
		if err != nil {
			return
		}
		for _, form := range []HeaderForm{NotesHeader, SharedHeader, StubsHeader} {
			if len(provider.Check(file.Providers, form == StubsHeader)) > 0 {
				continue
			}
			data := WriteHeader(name, file.Providers, form)
			if clean := filepath.Base(name) == name && name != "." && name != ".."; clean && !bytes.Equal(data, WriteHeader("directory/"+name, file.Providers, form)) {
				t.Fatal("other bytes in another directory")
			}
			checkHeader(t, string(data), file.Providers)
		}
	})
}

// checkHeader reads a header as a preprocessor does.
func checkHeader(t *testing.T, text string, providers []*provider.Provider) {
	t.Helper()
	groups := 0
	defined := map[string]int{}
	for s := provider.NewScanner("x.h", text); ; {
		tok, ok := s.Next()
		if !ok {
			break
		}
		words := strings.Fields(tok.Text)
		switch {
		case tok.Kind == provider.BadToken:
			t.Fatalf("%v: %s", tok.Pos, tok.Text)
		case tok.Kind != provider.DirectiveToken:
		case words[0] == "define":
			name, _, _ := strings.Cut(words[1], "(")
			defined[name]++
		case words[0] == "if", words[0] == "ifdef", words[0] == "ifndef":
			groups++
		case words[0] == "endif":
			groups--
		case words[0] != "else" && words[0] != "elif" && words[0] != "undef" && words[0] != "error" && words[0] != "include" && words[0] != "pragma":
			t.Fatalf("%v: #%s", tok.Pos, tok.Text)
		}
	}
	if groups != 0 {
		t.Fatalf("%d conditions do not end", groups)
	}
	for _, p := range providers {
		for _, probe := range p.Probes {
			for _, macro := range []string{provider.Macro(p.Name, probe.Name), provider.MacroEnabled(p.Name, probe.Name)} {
				want := fmt.Sprintf("\n#define %s(", macro)
				if defined[macro] != 1 || strings.Count(text, want) != 1 {
					t.Fatalf("%s is defined %d times", macro, defined[macro])
				}
			}
		}
	}
}
