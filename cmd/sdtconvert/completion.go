package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"sdtconvert/internal/check"
)

// completionCommand writes the code by which a shell completes command lines. The code
// runs this program for what it suggests.
var completionCommand = &command{
	name: "completion", synopsis: "completion SHELL", brief: "write completions for bash, zsh or fish",
	usage: []string{"sdtconvert completion bash|zsh|fish"},
	text: `Writes code for a shell that completes commands, flags and their values. Installed
are

    bash    share/bash-completion/completions/sdtconvert
    zsh     share/zsh/site-functions/_sdtconvert (Debian: vendor-completions)
    fish    share/fish/vendor_completions.d/sdtconvert.fish`,
	new: func() invocation { return flagless((*program).completion) },
}

// completeWord is the first word of the command line by which the shells' code asks. The words so far
// follow, and then the one that is to be completed. The answer has a line for each suggestion, "word", or
// "word<tab>description"; and for names of files or directories, which the shell knows, the line that is
// filesLine or directoriesLine.
const (
	completeWord    = "__complete"
	filesLine       = ":files"
	directoriesLine = ":directories"
)

// shells have the code of each. bash divides a word at "=", and wants what follows it.
var shells = []struct{ name, code string }{
	{"bash", `_sdtconvert() {
	local line
	COMPREPLY=()
	compopt +o default
	while IFS= read -r line; do
		case $line in
		:files) compopt -o default ;;
		:directories) compopt -o dirnames ;;
		--*=*) COMPREPLY+=("${line#*=}") ;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <(sdtconvert __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _sdtconvert sdtconvert
`},
	{"zsh", `#compdef sdtconvert
_sdtconvert() {
	local line mode
	local -a suggestions
	while IFS= read -r line; do
		case $line in
		:*) mode=$line ;;
		*) line=${line//:/\\:}; suggestions+=("${line/$'\t'/:}") ;;
		esac
	done < <(sdtconvert __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
	(( $#suggestions )) && _describe -V sdtconvert suggestions
	case $mode in
	:files) _files ;;
	:directories) _files -/ ;;
	esac
}
if [[ $funcstack[1] = _sdtconvert ]]; then
	_sdtconvert
else
	compdef _sdtconvert sdtconvert
fi
`},
	{"fish", `function __sdtconvert_complete
	set -l words (commandline -opc)
	set -l word (commandline -ct)
	for line in (sdtconvert __complete $words[2..-1] "$word" 2>/dev/null)
		switch $line
			case :files
				__fish_complete_path "$word"
			case :directories
				__fish_complete_directories "$word" ''
			case '*'
				echo $line
		end
	end
end
complete -c sdtconvert -f -k -a '(__sdtconvert_complete)'
`},
}

func shellNames() []string {
	var names []string
	for _, s := range shells {
		names = append(names, s.name)
	}
	return names
}

func (p *program) completion(args []string) (bool, error) {
	names := strings.Join(shellNames(), ", ")
	if len(args) != 1 {
		return false, usagef("want one shell: %s", names)
	}
	for _, s := range shells {
		if args[0] == s.name {
			_, err := io.WriteString(p.Stdout, s.code)
			return false, err
		}
	}
	return false, usagef("unknown shell %q: want %s", args[0], names)
}

// completes reports whether a shell asks how a command line can go on.
func completes(args []string) bool { return len(args) > 1 && args[0] == completeWord }

// complete answers a shell.
func (p *program) complete(args []string) {
	words := joinValues(args[1:])
	words, last := words[:len(words)-1], words[len(words)-1]
	for _, s := range suggest(words, last) {
		if !strings.HasPrefix(s.word, last) && !strings.HasPrefix(s.word, ":") {
			continue
		}
		line := s.word
		if s.help != "" {
			line += "\t" + s.help
		}
		fmt.Fprintln(p.Stdout, line)
	}
}

// joinValues joins what bash has divided: --flag, = and a value.
func joinValues(words []string) (joined []string) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if strings.HasPrefix(word, "--") && i+1 < len(words) && words[i+1] == "=" {
			i++
			if word += "="; i+1 < len(words) {
				i++
				word += words[i]
			}
		}
		joined = append(joined, word)
	}
	return joined
}

// suggestion is a word that a command line can go on with, or filesLine or directoriesLine.
type suggestion struct{ word, help string }

// suggest returns what can follow some words, the last of which has begun.
func suggest(words []string, last string) []suggestion {
	c, at, operands := splitCommand(words)
	isFirst := c == nil && at == len(words)
	if c == nil {
		c = convertCommand
	}
	if slices.Contains(words, "--") {
		return []suggestion{{word: filesLine}}
	}
	if n := len(words); n > 0 && isFlag(words[n-1]) && valueFollows(words[n-1]) {
		return c.optionOf(words[n-1]).values("")
	}
	if name, _, ok := strings.Cut(last, "="); ok && isFlag(last) {
		return c.optionOf(name).values(name + "=")
	}
	if strings.HasPrefix(last, "-") {
		return c.suggestFlags()
	}
	return c.suggestArguments(isFirst, len(operands))
}

// optionOf returns the flag of a command that a word names, nil for none.
func (c *command) optionOf(word string) *option {
	for _, o := range c.flags() {
		if word == "--"+o.name || o.letter != "" && strings.HasSuffix(word, o.letter) && !strings.HasPrefix(word, "--") {
			return o
		}
	}
	return nil
}

// values suggests values of a flag, behind a prefix.
func (o *option) values(prefix string) (s []suggestion) {
	switch {
	case o == nil:
	case o == allowOption:
		for _, r := range check.Rules {
			s = append(s, suggestion{prefix + r.Name, r.Summary})
		}
	case o.complete == completeFile:
		s = append(s, suggestion{word: filesLine})
	case o.complete == completeDirectory:
		s = append(s, suggestion{word: directoriesLine})
	default:
		for _, c := range o.choices {
			s = append(s, suggestion{word: prefix + c})
		}
	}
	return s
}

// suggestFlags suggests the flags of a command.
func (c *command) suggestFlags() (s []suggestion) {
	for _, o := range c.flags() {
		s = append(s, suggestion{"--" + o.name, o.help})
	}
	for _, g := range c.groups {
		for _, o := range g.options {
			if !c.ownFlags {
				continue
			}
			for name := range strings.SplitSeq(o.head, ", ") {
				s = append(s, suggestion{strings.Fields(name)[0], o.help})
			}
		}
	}
	return s
}

// suggestArguments suggests the arguments of a command behind n others. The first word may be a command, too.
func (c *command) suggestArguments(isFirst bool, n int) (s []suggestion) {
	var names []string
	switch {
	case isFirst || c == helpCommand && n == 0:
		for _, c := range commands {
			s = append(s, suggestion{c.name, c.brief})
		}
	case c == completionCommand && n == 0:
		names = shellNames()
	}
	for _, name := range names {
		s = append(s, suggestion{word: name})
	}
	if c != helpCommand && c != completionCommand && c != versionCommand {
		s = append(s, suggestion{word: filesLine})
	}
	return s
}
