package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

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
