package main

import "strings"

// Help is made from the declarations of commands and options.

const (
	helpWidth    = 80 // of a line
	optionColumn = 28 // where the help of a flag begins
	briefColumn  = 44 // where the help of a command begins in the overview
)

// overview is the help on the program.
func overview() string {
	var b strings.Builder
	b.WriteString(`sdtconvert replaces calls of DTrace probe stubs in object files with NOPs, and
records each site.

Usage:
`)
	for _, c := range commands {
		writeColumns(&b, "    sdtconvert "+c.synopsis, briefColumn, c.brief)
	}
	b.WriteString(`
Without a command, the files are converted. Flags may precede the command. An
argument @FILE stands for the arguments in FILE. 'sdtconvert help COMMAND' shows
the flags of a command.

Exit status: 0 success, 1 something was wrong with a file (it is unchanged, and
the others are done), 2 the command line is wrong and nothing was done, for
example if the first word is neither a command nor a file. check exits with 1 if
it has found an error, and with 3 if it could not read a file.
`)
	return b.String()
}

// help returns the help on a command.
func (c *command) help() string {
	var b strings.Builder
	b.WriteString("Usage: " + strings.Join(c.usage, "\n       ") + "\n\n" + c.text + "\n")
	for _, g := range c.groups {
		g.write(&b)
	}
	if c.after != "" {
		b.WriteString("\n" + c.after + "\n")
	}
	if c.exit != "" {
		b.WriteString("\n" + wrap("Exit status: "+c.exit, helpWidth) + "\n")
	}
	return b.String()
}

// write writes the flags of a group, below an empty line and the title.
func (g *group) write(b *strings.Builder) {
	b.WriteByte('\n')
	if g.title != "" {
		b.WriteString(g.title + ":\n")
	}
	for _, o := range g.options {
		name := "        " + o.spelled()
		switch {
		case o.head != "":
			name = "    " + o.head
		case o.letter != "":
			name = "    -" + o.letter + ", " + o.spelled()
		}
		writeColumns(b, name, optionColumn, o.help)
	}
	if len(g.asConvert) > 0 {
		var names []string
		for _, o := range g.asConvert {
			names = append(names, strings.ReplaceAll(o.spelled(), " ", "\x00"))
		}
		list := strings.ReplaceAll(indent(wrap(strings.Join(names, ", "), helpWidth-8), 8), "\x00", " ")
		b.WriteString(list + "\n")
		writeColumns(b, "", optionColumn, "as for convert")
	}
}

// writeColumns writes a text beside a name, or below it if the name is too long.
func writeColumns(b *strings.Builder, name string, column int, text string) {
	text = indent(wrap(text, helpWidth-column), column)
	if len(name) < column {
		text = name + text[len(name):]
	} else {
		text = name + "\n" + text
	}
	b.WriteString(text + "\n")
}

// wrap breaks a text into lines of so many bytes at most, where words permit it.
func wrap(text string, width int) string {
	var lines []string
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// indent puts spaces before each line.
func indent(text string, width int) string {
	space := strings.Repeat(" ", width)
	return space + strings.ReplaceAll(text, "\n", "\n"+space)
}
