package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"sdtconvert/internal/check"
	"sdtconvert/internal/message"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// Whatever names are in an error, it is one line, and no command for a terminal.
func TestErrorsAreLines(t *testing.T) {
	var out bytes.Buffer
	message.Error(&out, errors.Join(errors.New("a\n::error::b"), errors.New("c\x1b[31m\r\u0085"), errors.New("ü\xff\t'\\")))
	expect.Equal(t, "sdtconvert: a\\n::error::b\nsdtconvert: c\\x1b[31m\\r\\u0085\nsdtconvert: ü\\xff\\t'\\\n", out.String())
}

// Names in files change no number of lines, and are not commands for a terminal.
func TestNamesStayInTheirLines(t *testing.T) {
	plain := disk.Read(t, "../../testdata/objs/calls.amd64-gcc12-Os.o")
	const function, section = "calls_zero", ".text"
	if !bytes.Contains(plain, []byte(function+"\x00")) {
		t.Fatalf("the object has no %s", function)
	}
	hostile := bytes.ReplaceAll(plain, []byte(function), []byte("\n\x9b\x1b\u202e\u2028l"))
	hostile = bytes.ReplaceAll(hostile, []byte(section+"\x00"), []byte(".t\nxt\x00"))
	directory := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(directory, name)
		disk.Write(t, path, data)
		return path
	}
	output := func(object string, args ...string) string {
		var out, stderr bytes.Buffer
		if status := runWith(&out, &stderr, append(args, object)...); status != exitOK {
			t.Fatalf("%v: exit status %d: %s", args, status, &stderr)
		}
		return out.String()
	}
	a, b := write("a.o", plain), write("b.o", hostile)
	for _, args := range [][]string{{"inspect"}, {"convert", "-v"}, {"convert", "-n"}, {"list", "-v"}, {"list", "--json"}, {"inspect", "--json"}} {
		want, got := output(a, args...), output(b, args...)
		if strings.Count(got, "\n") != strings.Count(want, "\n") || strings.ContainsAny(got, "\x1b\r\u202e\u2028") || !utf8.ValidString(got) {
			t.Errorf("%v prints\n%q, where other names give\n%q", args, got, want)
		}
	}
	var out, stderr bytes.Buffer
	if status := runWith(&out, &stderr, "resolve", b, ".t\nxt+0x0"); status != exitOK || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("resolve: exit status %d: %q %q", status, &out, &stderr)
	}
}

// The manual page of checks has every rule.
func TestRulesAreDocumented(t *testing.T) {
	manual := string(disk.Read(t, "../../docs/check.md"))
	for _, rule := range check.Rules {
		_, text, ok := strings.Cut(manual, "\n### "+rule.Name+"\n")
		text, _, _ = strings.Cut(text, "\n###")
		if !ok || !strings.Contains(text, "Cure:") {
			t.Errorf("docs/check.md does not describe %s, or has no cure", rule.Name)
		}
		expect.Equal(t, rule.Severity == check.Note, strings.HasPrefix(strings.TrimSpace(text), "A note:"), "docs/check.md: %s is a note", rule.Name)
	}
}

// The help and docs/check.md name every format.
func TestFormatsAreDocumented(t *testing.T) {
	for _, format := range check.FormatNames() {
		if !slices.Contains(strings.FieldsFunc(formatOption.help, func(r rune) bool { return r == ',' || r == ' ' }), format) {
			t.Errorf("the help does not name %s", format)
		}
		expect.Contains(t, string(disk.Read(t, "../../docs/check.md")), "`--format "+format+"`")
	}
}

// Absolute paths count from the current directory, or from the one that the objects share.
func TestDirectoryOfAliases(t *testing.T) {
	t.Chdir(t.TempDir())
	wd := expect.Value(os.Getwd())(t)
	for _, c := range []struct {
		objects []string
		want    string
	}{
		{nil, wd},
		{[]string{"a.o", "../b.o"}, wd},
		{[]string{"a.o", filepath.Join(wd, "x", "a.o")}, wd},
		{[]string{"/b/x/a.o", "/b/x/b.o"}, "/b/x"},
		{[]string{"/b/x/a.o", "c.o", "/b/y/a.o"}, "/b"},
		{[]string{"/b/y/z/a.o", "/b/y/a.o", "/bc/a.o"}, "/"},
		{[]string{filepath.Join(wd, "a.o"), "/b/a.o"}, "/"},
	} {
		o := &providerOptions{objects: c.objects}
		expect.Equal(t, c.want, o.aliases().Directory, "%q", c.objects)
	}
}

// docs/sdtconvert.1 is what the program prints.
func TestManualIsCurrent(t *testing.T) {
	expect.Equal(t, manual(), string(disk.Read(t, "../../docs/sdtconvert.1")), "run: go run ./cmd/sdtconvert help --man >docs/sdtconvert.1")
}

// The manual has an example of each command that works on files.
func TestEachCommandHasAnExample(t *testing.T) {
	_, examples, found := strings.Cut(manual(), "\n.Sh EXAMPLES\n")
	examples, _, _ = strings.Cut(examples, "\n.Sh ")
	if !found {
		t.Fatal("the manual has no examples")
	}
	for _, c := range commands {
		if c != convertCommand && c != helpCommand && c != versionCommand { // the first needs no name
			expect.Contains(t, examples, "sdtconvert "+c.name+" ", "no example of %s", c.name)
		}
	}
}

// Each command has the flags that its declaration lists, and no others; and each flag has a help.
func TestFlagsAreDeclared(t *testing.T) {
	for _, c := range commands {
		var declared, defined []string
		for _, g := range c.groups {
			for _, o := range slices.Concat(g.options, g.asConvert) {
				if o.help == "" {
					t.Errorf("%s: %s has no help", c.name, o.spelled())
				}
				if o.head == "" {
					declared = append(declared, o.name)
				}
			}
		}
		newFlagSet(c, c.new()).VisitAll(func(flag *pflag.Flag) { defined = append(defined, flag.Name) })
		slices.Sort(declared)
		slices.Sort(defined)
		expect.Equal(t, declared, defined, "%s: flags that are declared (-) and defined (+)", c.name)
	}
}

// What parses provider's command line knows the flags that are declared for it, and they
// are all the letters that it knows but those that have no effect.
func TestProviderFlagsAreDeclared(t *testing.T) {
	declared := ""
	for _, o := range providerFlags {
		for head := range strings.SplitSeq(o.head, ", ") {
			words := strings.Fields(head)
			if len(words) == 2 {
				words[1], _, _ = strings.Cut(words[1], "[")
			}
			p, err := parseProviderOptions(append(words, "-h", "-s", "a.d", "-o", "a.h"))
			if err != nil && head != "-G" {
				t.Errorf("%s: %v", head, err)
			} else if err == nil && len(p.warnings) > 0 {
				t.Errorf("%s: %v", head, p.warnings)
			}
			declared += words[0][1:2]
		}
	}
	for _, letter := range valueOptions + flagOptions {
		if !strings.ContainsRune(declared, letter) && !strings.Contains(providerCommand.after, "-"+string(letter)+",") {
			t.Errorf("-%c is not declared", letter)
		}
	}
}
