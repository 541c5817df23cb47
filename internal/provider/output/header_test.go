package output

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/dof"
	"sdtconvert/internal/dtrace"
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

func probes(name string, names ...string) *provider.Provider {
	p := &provider.Provider{Name: name}
	for _, probe := range names {
		p.Probes = append(p.Probes, &provider.Probe{Name: probe})
	}
	return p
}

// object assembles calls of stubs, each in a function of its own unless it has a name for
// one: "f:stub".
func object(t *testing.T, stubs ...string) string {
	t.Helper()
	tools.Need(t, "as")
	var text strings.Builder
	for i, stub := range stubs {
		name, stub, named := strings.Cut(stub, ":")
		if !named {
			name, stub = string(rune('a'+i)), name
		}
		bind := ".globl "
		if strings.HasPrefix(name, "weak") {
			bind = ".weak "
		}
		if strings.HasPrefix(name, "weakfar") {
			name = name[:4]
			stub = "nop; call " + stub
		} else {
			stub = "call " + stub
		}
		text.WriteString(bind + name + "\n.type " + name + ",@function\n" + name + ": " + stub + "\n ret\n.size " + name + ",.-" + name + "\n")
	}
	path := filepath.Join(t.TempDir(), "x.s")
	disk.Write(t, path, text.String())
	tools.Must(t, "as", "--64", "-o", path+".o", path)
	return path + ".o"
}

// shape returns what is told of probes: provider:probe, and functions with the number of
// sites and of tests.
func shape(s *ProbeSites) (all []string) {
	for _, p := range s.Providers(128) {
		for _, probe := range p.Probes {
			text := p.Name + ":" + probe.Name
			for _, f := range probe.Functions {
				text += " " + f.Name + strings.Repeat("+", len(f.Offsets)) + strings.Repeat("?", len(f.Enabled))
			}
			all = append(all, text)
		}
	}
	return all
}

// Which probe a stub is of is told by the providers that there are.
func TestSiteNames(t *testing.T) {
	for _, c := range []struct {
		providers []*provider.Provider
		stubs     []string
		want      []string
	}{
		{[]*provider.Provider{probes("p", "a__b", "x")}, []string{"__dtrace_p___a__b", "__dtraceenabled_p___a__b", "__dtrace_probe_p___x", "__dtrace_isenabled_p___x"}, []string{"p:a-b a+ b?", "p:x c+ d?"}},
		{[]*provider.Provider{probes("p", "x"), probes("probe_p", "x")}, []string{"__dtrace_p___x", "__dtrace_probe_p___x"}, []string{"p:x a+", "probe_p:x b+"}},
		{[]*provider.Provider{probes("isenabled_p", "x")}, []string{"__dtrace_isenabled_p___x", "__dtraceenabled_isenabled_p___x"}, []string{"isenabled_p:x a+ b?"}},
		{[]*provider.Provider{probes("p", "_x"), probes("p_", "x")}, []string{"__dtrace_p____x"}, []string{"p:_x a+"}},
		{[]*provider.Provider{probes("p_", "x"), probes("q")}, []string{"__dtrace_p____x", "f:__dtrace_p____x", "other"}, []string{"p_:x a+ f+"}},
	} {
		s := NewProbeSites(c.providers, dtrace.Aliases{})
		if err := s.Add(object(t, c.stubs...)); err != nil {
			t.Errorf("%q: %v", c.stubs, err)
			continue
		}
		expect.Equal(t, c.want, shape(s), "%q", c.stubs)
	}
}

func TestUnknownProbes(t *testing.T) {
	s := NewProbeSites([]*provider.Provider{probes("p", "x")}, dtrace.Aliases{})
	for _, stub := range []string{"__dtrace_p___y", "__dtrace_q___x", "__dtraceenabled_p__x", "__dtrace_x"} {
		want := `: .text+0x1: in a+0x1: no provider file has a probe of "` + stub + `"; give the file that declares it with another -s`
		if err := s.Add(object(t, stub)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got := shape(s); got != nil {
		t.Errorf("%q", got)
	}
}

// A weak function of several objects is told of once, and not at all where its sites are
// here or there.
func TestWeakFunctions(t *testing.T) {
	s := NewProbeSites([]*provider.Provider{probes("p", "x")}, dtrace.Aliases{})
	one, two, other := object(t, "weak:__dtrace_p___x"), object(t, "weak:__dtrace_p___x"), object(t, "weakfar:__dtrace_p___x")
	for _, path := range []string{one, two} {
		expect.OK(t, s.Add(path))
	}
	expect.Equal(t, []string{"p:x weak+"}, shape(s))
	want := "function weak has its sites of probe x elsewhere than in " + one + ", and linkers keep one of the two; compile both with the same flags"
	if err := s.Add(other); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Names of functions are cut to what a kernel has room for, those of symbols are not.
func TestLongNames(t *testing.T) {
	name := "f" + strings.Repeat("x", 200)
	s := NewProbeSites([]*provider.Provider{probes("p", "x")}, dtrace.Aliases{})
	expect.OK(t, s.Add(object(t, name+":__dtrace_p___x")))
	f := s.Providers(128)[0].Probes[0].Functions[0]
	if diff := cmp.Diff(dof.Function{Name: name[:127], Symbol: f.Symbol, Offsets: []uint32{0}}, f); diff != "" || !strings.HasSuffix(f.Symbol, name) {
		t.Error(diff)
	}
}
