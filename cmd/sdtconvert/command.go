package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/internal/ld/line"
)

// command runs with its arguments, and tells whether anything failed that it
// has reported itself.
type command func(p *program, args []string) (failed bool, err error)

// linkCommand is the command of a linker, whose response files are the linker's: see
// runCommand.
const linkCommand = "ld"

// commandNames are all commands.
var commandNames = []string{"check", "convert", "inspect", linkCommand, "list", "provider", "resolve", "sites", "stubs", "version", "help"}

// isCommand reports whether a word names a command.
func isCommand(word string) bool {
	return slices.Contains(commandNames, word) || word == "--version" || word == "-V"
}

// commandNamed returns a command, but for that of a linker.
func commandNamed(name string) command {
	switch name {
	case "check":
		return (*program).check
	case "inspect":
		return (*program).inspect
	case "list":
		return (*program).list
	case "provider":
		return (*program).provider
	case "resolve":
		return (*program).resolve
	case "sites":
		return (*program).sites
	case "stubs":
		return (*program).stubs
	case "version", "--version", "-V":
		return (*program).version
	case "help":
		return (*program).help
	}
	return (*program).convert
}

// splitCommand returns the command that args name, and the other arguments. Flags may
// precede the command. If args name none, it is "". at is what firstWord returns.
func splitCommand(args []string) (name string, at int, rest []string) {
	at = firstWord(args)
	if at == len(args) || !isCommand(args[at]) {
		return "", at, args
	}
	return args[at], at, append(args[:at:at], args[at+1:]...)
}

// checkFirstWord returns a usage error if the word at an index, the first of args, which
// name no command, is no file either: then it is probably a misspelt command, and
// converting the files behind it would be a surprise.
func checkFirstWord(args []string, at int) error {
	if at == len(args) {
		return nil
	}
	word := args[at]
	if _, err := os.Lstat(word); err == nil || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if near := nearestCommand(word); near != "" {
		return usagef("unknown command or file %q: did you mean %s?", word, near)
	}
	return usagef("unknown command or file %q", word)
}

// firstWord returns the index of the first word that is neither a flag nor the value of
// one, or len(args). What follows "--" is a file, not a command.
func firstWord(args []string) int {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if len(word) < 2 || word[0] != '-' || isCommand(word) {
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

// flagSets are the flags of all commands. A flag means what it means to the first of them
// that has it; the others are not made then.
var flagSets = []func() *pflag.FlagSet{
	func() *pflag.FlagSet { return convertFlags().FlagSet },
	func() *pflag.FlagSet { return linkerFlags().FlagSet },
	func() *pflag.FlagSet { f, _ := listFlags(); return f },
	func() *pflag.FlagSet { f, _ := resolveFlags(); return f },
	func() *pflag.FlagSet { s, _ := newCheckFlags(); return s.FlagSet },
}

// valueFollows reports whether the value of a flag is the next word.
func valueFollows(word string) bool {
	for _, flags := range flagSets {
		set := flags()
		if name, long := strings.CutPrefix(word, "--"); long {
			if f := set.Lookup(name); f != nil {
				return f.NoOptDefVal == ""
			}
			continue
		}
		// In a group of letters, the first one with a value ends it.
		for i, letter := range word[1:] {
			f := set.ShorthandLookup(string(letter))
			if f == nil {
				break
			}
			if f.NoOptDefVal == "" {
				return i+2 == len(word)
			}
			if i+2 == len(word) {
				return false
			}
		}
	}
	return false
}

// nearestCommand returns the command that a word is a misspelling of, or "".
func nearestCommand(word string) string {
	nearest, least := "", 3 // more than two wrong letters make another word
	for _, name := range commandNames {
		distance := editDistance(word, name)
		if len(word) > 2 && strings.HasPrefix(name, word) {
			distance = 1
		}
		if distance < least && distance < len(name) {
			nearest, least = name, distance
		}
	}
	return nearest
}

// editDistance returns how many letters have to be inserted, deleted or replaced to
// make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// runCommand runs the command that args name, or converts the files that they are.
func (p *program) runCommand(args []string) int {
	name, at, rest := splitCommand(args)
	if name == linkCommand { // its response files are the linker's
		return p.runLinker(rest)
	}
	expanded, err := line.Expand(args, requireFlag)
	if err != nil {
		if unread := (*fs.PathError)(nil); !errors.As(err, &unread) {
			err = usageError{err}
		}
		if name == "check" {
			err = checkError(err)
		}
		return p.report(err)
	}
	if !slices.Equal(expanded, args) {
		name, at, rest = splitCommand(expanded)
	}
	switch name {
	case linkCommand:
		return p.runLinker(rest)
	case "":
		name, err = "convert", checkFirstWord(expanded, at)
	}
	failed := false
	if err == nil {
		failed, err = commandNamed(name)(p, rest)
	}
	if errors.Is(err, pflag.ErrHelp) {
		_, err = p.help([]string{name})
	}
	switch {
	case err != nil:
		return p.report(err)
	case failed:
		return exitFailed
	}
	return exitOK
}
