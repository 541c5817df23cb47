package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

func manual(t *testing.T) string {
	t.Helper()
	return string(disk.Read(t, "../../docs/sdtconvert.1"))
}

// manualSections are the sections of the manual with the flags of commands; others have theirs in its text.
var manualSections = map[*command][]string{
	convertCommand: {"Output of convert", "What is converted", "What is recorded", "Archives"},
	listCommand:    {"Flags of list", "Flags of list and resolve"},
	checkCommand:   {"Checks"}, stubsCommand: {"Stubs"}, sitesCommand: {"Sites in assembly"}, providerCommand: {"Provider files"},
	ldCommand: {"Links"}, ccCommand: {"Compilations"}, traceCommand: {"Tracing"},
}

var (
	manualItem = regexp.MustCompile(`(?m)^\.It .*Fl .*$`)
	manualFlag = regexp.MustCompile(`\bFl (\S+)`)
	headFlag   = regexp.MustCompile(`(?:^|[ ,])-(-?\w[-\w]*)`)
)

// The manual describes the flags of each command, and no others, the values that they know, and the return thunks.
func TestManualHasTheFlags(t *testing.T) {
	text := manual(t)
	for c, sections := range manualSections {
		documented, declared := map[string]bool{}, map[string]bool{}
		for _, name := range sections {
			_, section, ok := strings.Cut(text, "\n.Ss "+name+"\n")
			expect.Equal(t, true, ok, "the manual has the section %s", name)
			section, _, _ = strings.Cut(section, "\n.S")
			for _, item := range manualItem.FindAllString(section, -1) {
				for _, m := range manualFlag.FindAllStringSubmatch(item, -1) {
					documented[m[1]] = true
				}
			}
		}
		for _, g := range c.groups {
			for _, o := range slices.Concat(g.options, g.asConvert) {
				for _, m := range headFlag.FindAllStringSubmatch(o.head, -1) {
					declared[m[1]] = true
				}
				if o.head == "" {
					declared["-"+o.name] = true
				}
				if o.letter != "" && slices.Contains(g.options, o) {
					declared[o.letter] = true
				}
				for _, value := range o.choices {
					expect.Contains(t, text, "Cm "+value, "a value of --%s", o.name)
				}
			}
		}
		expect.Equal(t, declared, documented, "%s: declared (-) and documented (+)", c.name)
	}
	for _, m := range machines.All() {
		expect.Contains(t, text, m.Traits().ReturnThunk.Symbol, "%s", m.Traits().Name)
	}
}

// The manual has an example of each command that works on files.
func TestEachCommandHasAnExample(t *testing.T) {
	_, examples, found := strings.Cut(manual(t), "\n.Sh EXAMPLES\n")
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
