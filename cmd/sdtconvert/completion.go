package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

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
	run: (*program).completion,
}

// shells have what writes their code.
var shells = []struct {
	name  string
	write func(root *cobra.Command, w io.Writer) error
}{
	{"bash", func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
	{"zsh", func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) }},
	{"fish", func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
}

// newRoot makes the command that the others are below, of which shells learn. It prints nothing itself.
func (p *program) newRoot() *cobra.Command {
	root := &cobra.Command{Use: "sdtconvert", SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	return root
}

func (p *program) completion(_ *flags, args []string) (bool, error) {
	var names []string
	for _, s := range shells {
		if len(args) == 1 && args[0] == s.name {
			return false, s.write(p.newRoot(), p.Stdout)
		}
		names = append(names, s.name)
	}
	if len(args) != 1 {
		return false, usagef("want one shell: %s", strings.Join(names, ", "))
	}
	return false, usagef("unknown shell %q: want %s", args[0], strings.Join(names, ", "))
}

// completes reports whether a shell asks how a command line can go on.
func completes(args []string) bool {
	return len(args) > 1 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// complete answers a shell: the words so far follow the request, and then the one that is
// to be completed.
func (p *program) complete(args []string) int {
	words, last := args[1:len(args)-1], args[len(args)-1]
	root := p.newRoot()
	root.ValidArgsFunction = convertCommand.completeArgument // beside the commands
	for _, c := range commands {
		cmd := &cobra.Command{Use: c.name, Short: c.brief, DisableFlagParsing: c.ownFlags, ValidArgsFunction: c.completeArgument}
		newFlags(c, cmd.Flags())
		cmd.Run = func(*cobra.Command, []string) {} // cobra suggests commands that run
		for _, o := range c.flags() {
			if o.value == "" {
				continue
			}
			// It fails for a flag that was not defined or is there twice.
			if err := cmd.RegisterFlagCompletionFunc(o.name, o.completeValue); err != nil {
				return p.report(err)
			}
		}
		root.AddCommand(cmd)
		if c == helpCommand {
			root.SetHelpCommand(cmd)
		}
	}
	root.SetArgs(append(append([]string{args[0]}, commandFirst(words, last)...), last))
	if err := root.Execute(); err != nil {
		return p.report(err)
	}
	return exitOK
}

// commandFirst returns the words before the last one with their command before its flags.
// If there are only flags, and the last word is not a flag or the value of one, then it may be
// a command or a file, and the flags do not matter.
func commandFirst(words []string, last string) []string {
	c, at, operands := splitCommand(words)
	switch {
	case c != nil:
		return append([]string{c.name}, operands...)
	case at < len(words) || strings.HasPrefix(last, "-") || at > 0 && isFlag(words[at-1]) && valueFollows(words[at-1]):
		return append([]string{convertCommand.name}, words...)
	}
	return nil
}

// completeValue suggests values of a flag.
func (o *option) completeValue(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case o == allowOption:
		var rules []cobra.Completion
		for _, r := range check.Rules {
			rules = append(rules, cobra.CompletionWithDesc(r.Name, r.Summary))
		}
		return rules, cobra.ShellCompDirectiveNoFileComp
	case o.choices != nil:
		var values []cobra.Completion
		for _, c := range o.choices {
			values = append(values, c.value)
		}
		return values, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	case o.complete == completeFile:
		return nil, cobra.ShellCompDirectiveDefault
	case o.complete == completeDirectory:
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeArgument suggests arguments of a command: mostly files, which the shell knows.
func (c *command) completeArgument(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var words []cobra.Completion
	switch {
	case c.ownFlags && strings.HasPrefix(word, "-"):
		for _, g := range c.groups {
			for _, o := range g.options {
				for name := range strings.SplitSeq(o.head, ", ") {
					words = append(words, cobra.CompletionWithDesc(strings.Fields(name)[0], o.help))
				}
			}
		}
	case c == helpCommand && len(args) == 0:
		words = commandNames()
	case c == completionCommand && len(args) == 0:
		for _, s := range shells {
			words = append(words, s.name)
		}
	case c != helpCommand && c != completionCommand && c != versionCommand:
		return nil, cobra.ShellCompDirectiveDefault
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
