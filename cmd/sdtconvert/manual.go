package main

import (
	_ "embed"
	"slices"
	"strings"
)

// manualText is the manual, but for what the declarations of commands and options say: a line `.\" synopsis` stands for the forms of all commands,
// and `.\" flags COMMAND` for the help on one.
//
//go:embed manual.mdoc
var manualText string

const manualMark = `.\" `

// manual returns the manual page, in mdoc(7).
func manual() string {
	var b strings.Builder
	for line := range strings.Lines(manualText) {
		mark, _ := strings.CutPrefix(strings.TrimSuffix(line, "\n"), manualMark)
		name, isFlags := strings.CutPrefix(mark, "flags ")
		switch {
		case mark == "synopsis":
			var forms []string
			for _, c := range commands {
				forms = append(forms, c.usage...)
			}
			writeLiteral(&b, strings.Join(forms, "\n"))
		case isFlags:
			commandNamed(name).writeManual(&b)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

// writeManual writes what help says about a command.
func (c *command) writeManual(b *strings.Builder) {
	writeLiteral(b, strings.Join(c.usage, "\n"))
	b.WriteString(".Pp\n" + manualProse(c.text))
	for _, g := range c.groups {
		if g.title != "" {
			b.WriteString(".Pp\n" + manualProse(g.title+":"))
		}
		b.WriteString(".Bl -tag -width Ds\n")
		for _, o := range g.options {
			b.WriteString(".It " + o.manualHead() + "\n" + manualProse(sentence(o.help)))
		}
		if len(g.asConvert) > 0 {
			var heads []string
			for _, o := range g.asConvert {
				heads = append(heads, "Fl -"+o.name)
			}
			for names := range slices.Chunk(heads, 5) {
				b.WriteString(".It " + strings.Join(names, " , ") + "\n")
			}
			b.WriteString("As for convert.\n")
		}
		b.WriteString(".El\n")
	}
	if c.after != "" {
		writeLiteral(b, c.after)
	}
	if c.exit != "" {
		b.WriteString(".Pp\n" + manualProse("Exit status: "+c.exit))
	}
}

// manualHead returns an option as an item of a list.
func (o *option) manualHead() string {
	if o.head != "" {
		return strings.ReplaceAll(o.head, "-", `\-`)
	}
	head := "Fl -" + o.name
	if o.letter != "" {
		head = "Fl " + o.letter + " , " + head
	}
	switch {
	case o.optional:
		head += " Ns Op = Ns Ar " + o.value
	case o.value != "":
		head += " Ar " + o.value
	}
	return head
}

// sentence returns the text of a flag as a sentence.
func sentence(help string) string {
	if first := help[0]; first >= 'a' && first <= 'z' {
		help = string(first-'a'+'A') + help[1:]
	}
	return help + "."
}

// manualProse returns paragraphs as mdoc has them: each sentence begins a line.
func manualProse(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".Pp\n")
		}
		for text := range strings.SplitAfterSeq(strings.Join(strings.Fields(paragraph), " "), ". ") {
			b.WriteString(wrap(escapeManual(strings.TrimSpace(text)), helpWidth) + "\n")
		}
	}
	return b.String()
}

// writeLiteral writes lines as they are.
func writeLiteral(b *strings.Builder, text string) {
	b.WriteString(".Bd -literal\n" + escapeManual(text) + "\n.Ed\n")
}

// escapeManual keeps roff from taking a text for more than that.
func escapeManual(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
