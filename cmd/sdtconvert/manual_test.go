package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

//go:generate go test -count=1 -run ^TestDocsAreCurrent$ . -update

// The manual's lists of flags are what the declarations make.
func TestDocsAreCurrent(t *testing.T) {
	lists := map[string]string{}
	for _, c := range commands {
		for _, g := range c.groups {
			if g.manual != "" {
				lists[g.manual] += g.mdoc()
			}
		}
	}
	for name, list := range lists {
		lists[name] = "\n.Bl -tag -width Ds\n" + list + ".El\n"
	}
	replaceMade(t, "../../docs/sdtconvert.1", `.\" made by go generate ./cmd/sdtconvert: %s`, `.\" end`, lists)
}

// The manual has an example of each command that works on files.
func TestEachCommandHasAnExample(t *testing.T) {
	_, examples, found := strings.Cut(string(disk.Read(t, "../../docs/sdtconvert.1")), "\n.Sh EXAMPLES\n")
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

// replaceMade compares the parts of a file that are between lines with what is made now.
// With -update it writes them.
func replaceMade(t *testing.T, path, begin, end string, parts map[string]string) {
	t.Helper()
	data := disk.Read(t, path)
	text, begins := string(data), strings.Count(string(data), begin[:strings.Index(begin, "%s")])
	expect.Equal(t, len(parts), begins, "%s: parts that are made", path)
	for name, made := range parts {
		before, rest, ok := strings.Cut(text, fmt.Sprintf(begin, name))
		old, after, ended := strings.Cut(rest, end+"\n")
		if !ok || !ended {
			t.Errorf("%s has no lines around %q", path, name)
			continue
		}
		if old != made && !*update {
			t.Errorf("%s: %s: go generate ./cmd/sdtconvert makes something else: %s", path, name, gocmp.Diff(old, made))
		}
		text = before + fmt.Sprintf(begin, name) + made + end + "\n" + after
	}
	if *update && text != string(data) {
		disk.Write(t, path, text)
	}
}

// mdoc returns the entries of a group of flags in a list of mdoc(7).
func (g *group) mdoc() string {
	var b strings.Builder
	for _, o := range g.options {
		b.WriteString(".It " + o.mdocHead() + "\n")
		if o.manual == "" {
			continue // the next entry has the text for both
		}
		b.WriteString(mdoc(strings.ReplaceAll(o.manual, thunksMark, returnThunks())))
		if o.choices == nil || o.choices[0].manual == "" {
			continue
		}
		longest := slices.MaxFunc(o.choices, func(a, b choice) int { return cmp.Compare(len(a.value), len(b.value)) })
		b.WriteString(".Bl -tag -width " + longest.value + "\n")
		for _, c := range o.choices {
			b.WriteString(".It Cm " + c.value + "\n" + mdoc(c.manual))
		}
		b.WriteString(".El\n")
	}
	for some := range slices.Chunk(g.asConvert, 4) {
		var names []string
		for _, o := range some {
			names = append(names, "Fl -"+o.name)
		}
		b.WriteString(".It " + strings.Join(names, " , ") + "\n")
	}
	if len(g.asConvert) > 0 {
		b.WriteString("As for\n.Cm convert .\n")
	}
	return b.String()
}

// returnThunks lists the return thunks of gcc, each with its machines.
func returnThunks() string {
	of := map[string][]string{}
	for _, m := range machines.All() {
		if symbol := m.Traits().ReturnThunk.Symbol; symbol != "" {
			of[symbol] = append(of[symbol], m.Traits().Name)
		}
	}
	var all []string
	for _, symbol := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[symbol])
		all = append(all, "`"+symbol+"` on "+strings.Join(of[symbol], " and "))
	}
	return strings.Join(all, ", ")
}

// mdocHead returns a flag with its value as arguments of a macro.
func (o *option) mdocHead() string {
	if o.head != "" {
		var heads []string
		for head := range strings.SplitSeq(strings.TrimSpace(o.head), ", ") {
			heads = append(heads, mdocWords(head))
		}
		return strings.Join(heads, " , ")
	}
	head := "Fl -" + o.name
	if o.letter != "" {
		head = "Fl " + o.letter + " , " + head
	}
	switch value := "Ar " + strings.ToLower(o.value); {
	case o.optional:
		head += " Ns Op Cm = Ns " + value
	case o.value != "":
		head += " " + value
	}
	return head
}

// mdocWords returns a flag of another form, perhaps with a value.
func mdocWords(head string) string {
	var words []string
	for word := range strings.FieldsSeq(head) {
		name, value, joined := strings.Cut(word, "=")
		argument := "Ar " + strings.ToLower(strings.TrimSuffix(value, "]"))
		switch {
		case word[0] == '-':
			word = "Fl " + word[1:]
		case word[0] == '@':
			word = "No @ Ns Ar " + strings.ToLower(word[1:])
		case strings.HasSuffix(name, "["):
			word = "Ar " + strings.ToLower(strings.TrimSuffix(name, "[")) + " Ns Op = Ns " + argument
		case joined:
			word = "Cm " + name + "= Ns " + argument
		case word[0] >= 'A' && word[0] <= 'Z':
			word = "Ar " + strings.ToLower(word)
		default:
			word = "Cm " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// marked finds what is marked in texts for the manual; see option.
var marked = regexp.MustCompile("`([^`]+)`|\\{([^}]+)\\}|\\*([^* ]+)\\*|\\$([A-Z]+)|(?:^|[ (])-(-?[A-Za-z][-A-Za-z]*)|\\b(FreeBSD)\\b")

// macros have the macro for each group of marked.
var macros = [...]string{1: "Ql", "Ar", "Cm", "Ev", "Fl", "Fx"}

// mdoc turns a text for the manual into mdoc(7).
func mdoc(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			b.WriteString(".Pp\n")
			continue
		}
		b.WriteString(mdocLine(line))
	}
	return b.String()
}

// mdocLine turns a line into lines: a macro stands at the beginning of one, with the
// punctuation behind it.
func mdocLine(line string) string {
	var b strings.Builder
	for line != "" {
		at := marked.FindStringSubmatchIndex(line)
		if at == nil {
			return b.String() + wrap(strings.TrimSpace(line), helpWidth) + "\n"
		}
		if before := strings.TrimSpace(line[:at[0]]); before != "" {
			b.WriteString(wrap(before, helpWidth) + "\n")
		}
		b.WriteByte('.')
		for at != nil {
			b.WriteString(mdocMacro(line, at))
			line = line[at[1]:]
			punctuation := line[:len(line)-len(strings.TrimLeft(line, ".,:;)"))]
			line = line[len(punctuation):]
			for _, c := range punctuation {
				b.WriteString(" " + string(c))
			}
			if at = marked.FindStringSubmatchIndex(line); at != nil && at[0] == 0 && line[0] != ' ' {
				b.WriteString(" Ns ")
			} else {
				at = nil
			}
		}
		b.WriteByte('\n')
		line = strings.TrimPrefix(line, " ")
	}
	return b.String()
}

// mdocMacro returns the macro for a match of marked, which has one group.
func mdocMacro(line string, at []int) string {
	for i := 1; i < len(macros); i++ {
		if at[2*i] < 0 {
			continue
		}
		text := line[at[2*i]:at[2*i+1]]
		if macros[i] == "Fx" {
			return "Fx"
		}
		if last := len(text) - 1; text[last] == ';' {
			text = text[:last] + `\&;` // which is not punctuation of the sentence
		}
		if strings.Contains(text, " ") {
			text = `"` + text + `"`
		}
		return macros[i] + " " + text
	}
	panic("a match without a group")
}

// Each command has the flags that its declaration lists, and no others; and each flag has a
// help, and a text for the manual if its list is there.
func TestFlagsAreDeclared(t *testing.T) {
	for _, c := range commands {
		var declared, defined []string
		for _, g := range c.groups {
			for _, o := range slices.Concat(g.options, g.asConvert) {
				if o.help == "" {
					t.Errorf("%s: %s has no help", c.name, o.spelled())
				}
				if i := slices.IndexFunc(o.choices, func(c choice) bool { return c.manual == "" }); i > 0 && o.choices[0].manual != "" {
					t.Errorf("%s: --%s %s has no text for the manual", c.name, o.name, o.choices[i].value)
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
