package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/internal/message"
	"sdtconvert/internal/responsefile"
)

// command declares a command: what help says about it, and what it does.
type command struct {
	name     string
	synopsis string   // in the overview
	brief    string   // what it does, in the overview
	usage    []string // its forms
	text     string   // what it does, in full
	groups   []group  // its flags
	after    string   // what follows them in help
	exit     string   // its exit statuses

	new func() invocation

	ownFlags bool   // parses its arguments itself; groups say which there are
	wrapped  string // other arguments, and response files, are those of this program; "" for none
}

// group is flags of a command that stand together in help.
type group struct {
	title     string
	options   []*option
	asConvert []*option // which help on convert explains
}

// commands are all commands, in the order of the overview. They are set by init because
// some of them refer to the list.
var commands []*command

func init() {
	commands = []*command{
		convertCommand, ldCommand, ccCommand, inspectCommand, checkCommand, listCommand, traceCommand, resolveCommand, stubsCommand,
		sitesCommand,
		providerCommand, completionCommand, versionCommand, helpCommand,
	}
}

// commandNames returns the names of all commands.
func commandNames() []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}

// commandNamed returns a command, nil if there is none of that name.
func commandNamed(name string) *command {
	if name == "--version" || name == "-V" {
		return versionCommand
	}
	if i := slices.IndexFunc(commands, func(c *command) bool { return c.name == name }); i >= 0 {
		return commands[i]
	}
	return nil
}

// splitCommand returns the command that args name, nil for none, and the other arguments.
// Flags may precede the command. at is what firstWord returns.
func splitCommand(args []string) (c *command, at int, operands []string) {
	at = firstWord(args)
	if at < len(args) {
		c = commandNamed(args[at])
	}
	if c == nil {
		return nil, at, args
	}
	return c, at, append(args[:at:at], args[at+1:]...)
}

// checkFirstWord returns a usage error if the word at an index, the first of args, which
// name no command, is not a file either: then it is probably a misspelt command, and
// converting the files behind it would be a surprise.
func checkFirstWord(args []string, at int) error {
	if at == len(args) {
		return nil
	}
	word := args[at]
	if _, err := os.Lstat(word); err == nil || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if slices.ContainsFunc(args[:at], isUnknownFlag) {
		return nil // which is the error: the word may be its value
	}
	if near := message.Nearest(word, commandNames()); near != "" && !strings.ContainsAny(word, "./") {
		return usagef("unknown command or file %q: did you mean %s?", word, near)
	}
	return usagef("%s: no such file", word)
}

// firstWord returns the index of the first word that is neither a flag nor the value of
// one, or len(args). What follows "--" is a file, not a command.
func firstWord(args []string) int {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if !isFlag(word) || commandNamed(word) != nil {
			return i
		}
		if word == "--" {
			break
		}
		if valueFollows(word) {
			i++
		}
	}
	return len(args)
}

// isUnknownFlag reports whether a word is a long flag that no command has.
func isUnknownFlag(word string) bool {
	name, isLong := strings.CutPrefix(word, "--")
	name, _, _ = strings.Cut(name, "=")
	isKnown := name == "" || name == "help" || commandNamed(word) != nil || findOption(func(o *option) bool { return o.name == name }) != nil
	return isLong && !isKnown
}

// isFlag reports whether a word has the form of a flag; "-" alone has not.
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// valueFollows reports whether the value of a flag is the next word. A flag means what it
// means to the first command that has it.
func valueFollows(word string) bool {
	if word[1] == '-' {
		o := findOption(func(o *option) bool { return o.name == word[2:] })
		return o != nil && o.takesValue()
	}
	// In a group of letters, the first one with a value ends it.
	for i, letter := range word[1:] {
		o := findOption(func(o *option) bool { return o.letter == string(letter) })
		if o == nil {
			return false
		}
		if o.takesValue() {
			return i+2 == len(word)
		}
	}
	return false
}

// findOption returns the first flag of all commands that matches, nil for none.
func findOption(match func(*option) bool) *option {
	for _, c := range commands {
		if o := c.findOption(match); o != nil {
			return o
		}
	}
	return nil
}

// findOption returns the first flag that help on the command explains and that matches, nil for
// none.
func (c *command) findOption(match func(*option) bool) *option {
	for _, g := range c.groups {
		for _, o := range g.options {
			if o.head == "" && match(o) {
				return o
			}
		}
	}
	return nil
}

// flags returns all flags that pflag parses.
func (c *command) flags() (options []*option) {
	for _, g := range c.groups {
		for _, o := range slices.Concat(g.options, g.asConvert) {
			if o.head == "" {
				options = append(options, o)
			}
		}
	}
	return options
}

// runCommand runs the command that args name, or converts the files that they are.
func (p *program) runCommand(args []string) int {
	if completes(args) {
		p.complete(args)
		return exitOK
	}
	c, _, operands := splitCommand(args)
	if c == nil || c.wrapped == "" {
		expanded, err := responsefile.Expand(args, requireFlag, onlyFlag)
		if err != nil {
			if unread := (*fs.PathError)(nil); !errors.As(err, &unread) {
				err = usageError{err}
			}
			if c == checkCommand {
				err = checkError(err)
			}
			return p.report(err)
		}
		at := 0
		if c, at, operands = splitCommand(expanded); c == nil {
			if err := checkFirstWord(expanded, at); err != nil {
				return p.report(err)
			}
		}
	}
	if c != nil && c != helpCommand {
		p.command = c.name
	}
	failed, err := p.execute(c, operands)
	switch {
	case err != nil:
		return p.report(err)
	case failed:
		return exitFailed
	}
	return exitOK
}

// execute runs a command with its arguments; nil is for convert where no command is named,
// whose help is the overview.
func (p *program) execute(c *command, args []string) (failed bool, err error) {
	help := overview
	if c != nil {
		help = c.help
	} else {
		c = convertCommand
	}
	run := c.new()
	s := newFlagSet(c, run)
	if c.ownFlags {
		return run.run(p, args)
	}
	switch err := s.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(p.Stdout, help())
		return false, err
	case err != nil && c.wrapped != "" && errors.As(err, new(*pflag.NotExistError)):
		return false, usagef("%w: write -- before %s: %s", err, c.wrapped, c.usage[0])
	case err != nil:
		return false, flagError(s.FlagSet, err)
	}
	return run.run(p, s.Args())
}

// flagError is the usage error for what parsing a command line has returned, but a request for help.
func flagError(f *pflag.FlagSet, err error) error {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		err = fmt.Errorf("%w%s", err, suggestFlag(f, unknown.GetSpecifiedName()))
	}
	return usageError{err}
}

// suggestFlag returns what to add to the error about an unknown flag: the flag that was probably
// meant, or the commands that have it.
func suggestFlag(f *pflag.FlagSet, name string) string {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := message.Nearest(name, names); near != "" {
		return fmt.Sprintf(": did you mean --%s?", near)
	}
	var owners []string
	for _, c := range commands {
		if c.findOption(func(o *option) bool { return o.name == name }) != nil {
			owners = append(owners, c.name)
		}
	}
	if len(owners) > 0 {
		return ": it is a flag of " + strings.Join(owners, ", ")
	}
	return ""
}
